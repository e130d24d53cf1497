// f32 transposed convolution, NHWC, 8 pixels by 4 channels in registers. Contract: conv_transpose2d_tile.h
#define MR 8
#define NR 4
#define KERNEL f32_conv_transpose2d_nhwc_8x4
#include "conv_transpose2d_tile.h"
