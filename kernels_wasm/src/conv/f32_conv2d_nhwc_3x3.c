// f32 convolution, NHWC, 3 pixels by 3 channels, lanes along the depth. Contract: conv2d_tile.h
//   Needs: ci is a multiple of 4.
#define MR 3
#define NR 3
#define KERNEL f32_conv2d_nhwc_3x3
#include "conv2d_tile.h"
