// f32 transposed convolution without overlap, NHWC, 4 pixels by 8 columns. Contract: conv_transpose2d_apart_tile.h
#define MR 4
#define NR 8
#define KERNEL f32_conv_transpose2d_nhwc_apart_4x8
#include "conv_transpose2d_apart_tile.h"
