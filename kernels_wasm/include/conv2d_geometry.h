// The arguments of a float32 convolution, as its tiles pass them on. conv2d_tile.h says what each is.
#pragma once

#include "epilogue.h"

typedef struct {
  const float *restrict x;
  const float *restrict w;
  float *restrict y;
  int32_t x_stride, y_stride;
  int32_t pixels, ih, iw, ci, oh, ow, co, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
  Epilogue e;
} Conv;
