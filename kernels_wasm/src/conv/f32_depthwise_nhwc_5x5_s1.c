// f32 depthwise convolution, NHWC, 5x5 window, stride 1. Contract: depthwise_tile.h
#define K 5
#define S 1
#define B 8
#define KERNEL f32_depthwise_nhwc_5x5_s1
#include "depthwise_tile.h"
