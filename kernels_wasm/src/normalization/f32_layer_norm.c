// Layer norm and RMS norm: each row less its mean (if centred), over the root of its mean square, scaled and shifted.
//
//   x      [rows, r]  read, up to 12 bytes past its end
//   scale  [r]        read likewise; 0 = ones
//   bias   [r]        read likewise; 0 = zeros
//   y      [rows, r]  written; may be x
//
// Needs: x and y are the same, or do not overlap.
//
// Units: rows.
#include "lanes.h"

void f32_layer_norm(const float *x, const float *scale, const float *bias, float *y, int32_t r, float epsilon,
                    int32_t centred, int32_t begin, int32_t end) {
  const v4f none = v4f_splat(0.0f);
  for (int32_t row = begin; row < end; row++) {
    const float *from = x + row * r;
    float *to = y + row * r;
    v4f mean = none, squares = none;
    if (centred) {
      NO_UNROLL for (int32_t k = 0; k < r; k += 4) mean += v4f_first_lanes(v4f_load(from + k), r - k, none);
      mean = FOLD(plus, mean) / (float)r;
    }
    NO_UNROLL for (int32_t k = 0; k < r; k += 4) {
      const v4f v = v4f_first_lanes(v4f_load(from + k) - mean, r - k, none);
      squares = v4f_madd(v, v, squares);
    }
    const v4f factor = 1.0f / v4f_sqrt(FOLD(plus, squares) / (float)r + epsilon);
    NO_UNROLL for (int32_t k = 0; k < r; k += 4) {
      v4f v = (v4f_load(from + k) - mean) * factor;
      if (scale) v *= v4f_load(scale + k);
      if (bias) v += v4f_load(bias + k);
      v4f_store_lanes(to + k, v, r - k);
    }
  }
}
