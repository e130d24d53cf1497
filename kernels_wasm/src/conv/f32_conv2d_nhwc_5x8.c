// f32 convolution, NHWC, 5 pixels by 8 channels in registers. Contract: conv2d_tile.h
#define MR 5
#define NR 8
#define KERNEL f32_conv2d_nhwc_5x8
#include "conv2d_tile.h"
