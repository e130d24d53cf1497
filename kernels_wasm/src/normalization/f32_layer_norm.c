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

enum { SUMS = 4 };  // side by side: one waits for each addition before

// The sum of r numbers less `mean`, or of their squares.
INLINE float sum_row(const float *x, int32_t r, v4f mean, const int squares) {
  const v4f none = v4f_splat(0.0f);
  v4f sums[SUMS] = {none, none, none, none};
  int32_t k = 0;
  NO_UNROLL for (; k + 4 * SUMS <= r; k += 4 * SUMS) {
    UNROLL for (int i = 0; i < SUMS; i++) {
      const v4f v = v4f_load(x + k + 4 * i) - mean;
      sums[i] = squares ? v4f_madd(v, v, sums[i]) : sums[i] + v;
    }
  }
  NO_UNROLL for (; k < r; k += 4) {
    const v4f v = v4f_first_lanes(v4f_load(x + k) - mean, r - k, none);
    sums[0] = squares ? v4f_madd(v, v, sums[0]) : sums[0] + v;
  }
  const v4f all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return FOLD(plus, all)[0];
}

void f32_layer_norm(const float *x, const float *scale, const float *bias, float *y, int32_t r, float epsilon,
                    int32_t centred, int32_t begin, int32_t end) {
  for (int32_t row = begin; row < end; row++) {
    const float *from = x + row * r;
    float *to = y + row * r;
    v4f mean = v4f_splat(0.0f);
    if (centred) mean = v4f_splat(sum_row(from, r, mean, 0) / (float)r);
    const v4f factor = 1.0f / v4f_sqrt(v4f_splat(sum_row(from, r, mean, 1) / (float)r + epsilon));
    NO_UNROLL for (int32_t k = 0; k < r; k += 4) {
      v4f v = (v4f_load(from + k) - mean) * factor;
      if (scale) v *= v4f_load(scale + k);
      if (bias) v += v4f_load(bias + k);
      v4f_store_lanes(to + k, v, r - k);
    }
  }
}
