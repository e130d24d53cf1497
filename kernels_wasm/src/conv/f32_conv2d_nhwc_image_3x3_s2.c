// f32 convolution of an RGB image, NHWC, 3x3 window, stride 2. Contract: conv2d_image_tile.h
#define K 3
#define S 2
#define KERNEL f32_conv2d_nhwc_image_3x3_s2
#include "conv2d_image_tile.h"
