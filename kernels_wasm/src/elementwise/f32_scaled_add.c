// Sum of a tensor and another one times a number: y = clamp(a + b * factor, lo, hi), the product rounded as by itself.
//
//   a, b  float32  read, up to 12 bytes past an end       y  float32  written; may be an operand
//   Needs: y overlaps an operand only where it is that operand.
//
// Units: elements.
#include "lanes.h"

void f32_scaled_add(const float *a, const float *b, float *y, float factor, float lo_value, float hi_value,
                    int32_t begin, int32_t end) {
  const v4f lo = v4f_splat(lo_value), hi = v4f_splat(hi_value);
  NO_UNROLL for (int32_t i = begin; i < end; i += 4) {
    v4f_store_lanes(y + i, v4f_clamp(v4f_load(a + i) + v4f_load(b + i) * factor, lo, hi), end - i);
  }
}
