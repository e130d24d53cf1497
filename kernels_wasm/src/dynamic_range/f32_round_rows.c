// Each element rounded to the nearest of 256 levels that its row has: what eight bits would hold of it.
//
//   x          [rows, r]  read, up to 12 bytes past its end
//   y          [rows, r]  written; may be x
//   symmetric  1: levels from -127 to 127 times the largest magnitude / 127, ties away from zero;
//              0: from the least (at most 0) to the greatest (at least 0), ties to even
//
// Needs: x and y are the same, or do not overlap.
//
// Units: rows.
// Source: XNNPACK, xnn_f32_qd8_asymmetric_quantization_params; tensorflow v2.18.0, SymmetricQuantizeFloats
#include "lanes.h"

void f32_round_rows(const float *x, float *y, int32_t r, int32_t symmetric, int32_t begin, int32_t end) {
  const v4f none = v4f_splat(0.0f);
  for (int32_t row = begin; row < end; row++) {
    const float *from = x + row * r;
    float *to = y + row * r;
    v4f low = none, high = none;
    NO_UNROLL for (int32_t k = 0; k < r; k += 4) {
      const v4f v = v4f_first_lanes(v4f_load(from + k), r - k, none);
      low = v4f_min(low, v);
      high = v4f_max(high, v);
    }
    const float least = FOLD(v4f_min, low)[0], most = FOLD(v4f_max, high)[0];
    float per, scale, zero = 0.0f, first = -127.0f, last = 127.0f;
    if (symmetric) {
      const float magnitude = -least > most ? -least : most;
      per = magnitude > 0.0f ? 127.0f / magnitude : 1.0f;
      scale = magnitude > 0.0f ? magnitude / 127.0f : 1.0f;
    } else {
      per = most > least ? 255.0f / (most - least) : 1.0f;
      scale = 1.0f / per;
      const float below = -128.0f + least * per, above = 127.0f + most * per;
      zero = below + above > 0.0f ? -128.0f - least * per : 127.0f - most * per;
      zero = v4f_round_even(v4f_clamp(v4f_splat(zero), v4f_splat(-128.0f), v4f_splat(127.0f)))[0];
      first = -128.0f - zero;
      last = 127.0f - zero;
    }
    const v4f half = v4f_splat(0.5f), lowest = v4f_splat(first), highest = v4f_splat(last);
    NO_UNROLL for (int32_t k = 0; k < r; k += 4) {
      const v4f scaled = v4f_load(from + k) * per;
      const v4f away = v4f_trunc(v4f_select(scaled < none, scaled - half, scaled + half));
      const v4f level = symmetric ? away : v4f_round_even(scaled);
      v4f_store_lanes(to + k, v4f_clamp(level, lowest, highest) * scale, r - k);
    }
  }
}
