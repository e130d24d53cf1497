// f32 convolution, NHWC, 4 pixels by 1 channel, lanes along the depth. Contract: conv2d_tile.h
#define MR 4
#define NR 1
#define KERNEL f32_conv2d_nhwc_4x1
#include "conv2d_tile.h"
