// Product of two matrices of int16, either of them perhaps transposed: 64-bit sums, scaled as those of i16_conv2d_nhwc.c.
//
//   x  element (m, k) at m * x_row + k * x_step int16       read
//   w  element (k, n) at n * w_column + k * w_step int16    read
//   y  [m, n] int16                                         written
// Needs: y overlaps nothing.
//
// Units: rows of y. Zero points are 0; y = (sum * scale + half) >> shift, clamped to lo..hi.
// Source: tensorflow v2.18.0, lite/kernels/internal/reference/batch_matmul.h and common.cc
#include "simd.h"

void i16_matmul(const int16_t *restrict x, const int16_t *restrict w, int16_t *restrict y, int32_t k, int32_t n,
                int32_t x_row, int32_t x_step, int32_t w_column, int32_t w_step, int32_t scale, int32_t shift,
                int32_t lo, int32_t hi, int32_t begin, int32_t end) {
  const int64_t half = (int64_t)1 << (shift - 1);
  for (int32_t row = begin; row < end; row++) {
    for (int32_t column = 0; column < n; column++) {
      const int16_t *a = x + row * x_row, *b = w + column * w_column;
      int64_t sum = 0;
      NO_UNROLL for (int32_t i = 0; i < k; i++) sum += (int32_t)a[i * x_step] * b[i * w_step];
      const int64_t scaled = (sum * scale + half) >> shift;
      y[row * n + column] = (int16_t)(scaled < lo ? lo : scaled > hi ? hi : scaled);
    }
  }
}
