// f32 convolution, NHWC, 2 pixels by 16 channels in registers. Contract: conv2d_tile.h
#define MR 2
#define NR 16
#define PANEL 8
#define KERNEL f32_conv2d_nhwc_2x16
#include "conv2d_tile.h"
