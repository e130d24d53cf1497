// f32 1x1 convolution with sparse weights, NHWC, 28 pixels in registers. Contract: sparse_tile.h
#define P 28
#define KERNEL f32_sparse_conv2d_nhwc_28x4
#include "sparse_tile.h"
