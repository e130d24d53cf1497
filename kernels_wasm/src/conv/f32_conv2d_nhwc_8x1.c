// f32 convolution, NHWC, 8 pixels by 1 channel, lanes along the depth. Contract: conv2d_tile.h
#define MR 8
#define NR 1
#define KERNEL f32_conv2d_nhwc_8x1
#include "conv2d_tile.h"
