// f32 depthwise convolution, NHWC, 3x3 window, stride 1. Contract: depthwise_tile.h
#define K 3
#define S 1
#define B 8
#define KERNEL f32_depthwise_nhwc_3x3_s1
#include "depthwise_tile.h"
