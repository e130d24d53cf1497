// f32 convolution, NHWC, 1 pixel by 32 channels in registers. Contract: conv2d_tile.h
#define MR 1
#define NR 32
#define PANEL 8
#define KERNEL f32_conv2d_nhwc_1x32
#include "conv2d_tile.h"
