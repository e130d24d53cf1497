// f32 convolution, NHWC, 3 pixels by 12 channels in registers. Contract: conv2d_tile.h
#define MR 3
#define NR 12
#define KERNEL f32_conv2d_nhwc_3x12
#include "conv2d_tile.h"
