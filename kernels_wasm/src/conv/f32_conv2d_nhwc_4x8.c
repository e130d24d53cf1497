// f32 convolution, NHWC, 4 pixels by 8 channels in registers. Contract: conv2d_tile.h
#define MR 4
#define NR 8
#define KERNEL f32_conv2d_nhwc_4x8
#include "conv2d_tile.h"
