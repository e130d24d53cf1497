// f32 1x1 convolution with sparse weights, NHWC, 32 pixels in registers. Contract: sparse_tile.h
#define P 32
#define KERNEL f32_sparse_conv2d_nhwc_32x4
#include "sparse_tile.h"
