// f32 depthwise convolution, NHWC, 3x3 window, stride 2. Contract: depthwise_tile.h
#define K 3
#define S 2
#define B 8
#define KERNEL f32_depthwise_nhwc_3x3_s2
#include "depthwise_tile.h"
