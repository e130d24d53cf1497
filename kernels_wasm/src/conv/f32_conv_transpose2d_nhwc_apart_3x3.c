// f32 transposed convolution, NHWC, windows that do not overlap, 3 pixels by 3 columns, lanes along the depth.
// Contract: conv_transpose2d_apart_tile.h
//   Needs: ci is a multiple of 4.
#define MR 3
#define NR 3
#define KERNEL f32_conv_transpose2d_nhwc_apart_3x3
#include "conv_transpose2d_apart_tile.h"
