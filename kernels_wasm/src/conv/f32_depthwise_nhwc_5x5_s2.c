// f32 depthwise convolution, NHWC, 5x5 window, stride 2. Contract: depthwise_tile.h
#define K 5
#define S 2
#define B 8
#define KERNEL f32_depthwise_nhwc_5x5_s2
#include "depthwise_tile.h"
