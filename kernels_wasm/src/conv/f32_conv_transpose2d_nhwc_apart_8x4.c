// f32 transposed convolution without overlap, NHWC, 8 pixels by 4 columns. Contract: conv_transpose2d_apart_tile.h
#define MR 8
#define NR 4
#define KERNEL f32_conv_transpose2d_nhwc_apart_8x4
#include "conv_transpose2d_apart_tile.h"
