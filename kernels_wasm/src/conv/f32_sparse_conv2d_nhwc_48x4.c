// f32 1x1 convolution with sparse weights, NHWC, 48 pixels in registers. Contract: sparse_tile.h
#define P 48
#define KERNEL f32_sparse_conv2d_nhwc_48x4
#include "sparse_tile.h"
