// f32 convolution of an RGB image, NHWC, 5x5 window, stride 2. Contract: conv2d_image_tile.h
#define K 5
#define S 2
#define KERNEL f32_conv2d_nhwc_image_5x5_s2
#include "conv2d_image_tile.h"
