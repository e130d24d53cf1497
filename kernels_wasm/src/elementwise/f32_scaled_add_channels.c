// Sum of a tensor and another one times a number a channel: y = clamp(a + b * factors, lo, hi), the product rounded as by
// itself.
//
//   a, b     [units, c]  read       y  [units, c]  written; may be an operand
//   factors  [c]         read
//   Needs: c is a multiple of 4; y overlaps an operand only where it is that operand, and not the factors.
//
// Units: rows of channels.
#include "simd.h"

void f32_scaled_add_channels(const float *a, const float *b, const float *factors, float *y, int32_t c, float lo_value,
                             float hi_value, int32_t begin, int32_t end) {
  const v4f lo = v4f_splat(lo_value), hi = v4f_splat(hi_value);
  int32_t at = begin * c;
  NO_UNROLL for (int32_t row = begin; row < end; row++) {
    NO_UNROLL for (int32_t i = 0; i < c; i += 4, at += 4) {
      v4f_store(y + at, v4f_clamp(v4f_load(a + at) + v4f_load(b + at) * v4f_load(factors + i), lo, hi));
    }
  }
}
