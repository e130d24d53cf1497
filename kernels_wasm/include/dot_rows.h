// The inner loop of the tiles with one output: four lanes along the depth, one vector of sums a pixel.
// For outputs so few that the lanes of a column tile would stay empty.
// Included once per file, after MR is defined and NR is 1.
//
//   panel  [1 + length]    read: the bias, then the weights
//   rows   MR of [length]  read, up to 3 floats past the end
//   Needs: MR is a multiple of 4.
#pragma once

#include "tile_sums.h"

// acc = the bias in the first lane; the weights behind it
INLINE const float *start_tile(v4f acc[MR][NV], const float *panel) {
  UNROLL for (int r = 0; r < MR; r++) acc[r][0] = (v4f){panel[0], 0.0f, 0.0f, 0.0f};
  return panel + 1;
}

// acc += rows[MR][length] * w[length], lane by lane; the weights' end.
INLINE const float *multiply(v4f acc[MR][NV], const float *const rows[MR], const float *w, int32_t length) {
  const float *a[MR];
  UNROLL for (int r = 0; r < MR; r++) a[r] = rows[r];
  int32_t k = length;
  NO_UNROLL for (; k >= 4; k -= 4) {
    const v4f b = v4f_load(w);
    UNROLL for (int r = 0; r < MR; r++) {
      PIN(a[r]);
      acc[r][0] = v4f_madd(v4f_load(a[r]), b, acc[r][0]);
      a[r] += 4;
    }
    w += 4;
  }
  if (k > 0) {
    // Lanes past the end must be zero on both sides: what lies there may be a NaN.
    const v4i mask = v4i_splat(k) > (v4i){0, 1, 2, 3};
    const v4f none = v4f_splat(0.0f), b = v4f_select(mask, v4f_load(w), none);
    UNROLL for (int r = 0; r < MR; r++) {
      acc[r][0] = v4f_madd(v4f_select(mask, v4f_load(a[r]), none), b, acc[r][0]);
    }
  }
  return w + k;
}

// The sums of the lanes of four rows.
INLINE v4f sum_lanes(v4f acc[4][NV]) {
  v4f pairs[2];
  UNROLL for (int i = 0; i < 2; i++) {
    const v4f a = acc[2 * i][0], b = acc[2 * i + 1][0];
    pairs[i] = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  }
  return __builtin_shufflevector(pairs[0], pairs[1], 0, 1, 4, 5) +
         __builtin_shufflevector(pairs[0], pairs[1], 2, 3, 6, 7);
}

// Ends and stores the first `count` rows: the sums of four rows are one vector.
INLINE void store_tile(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel,
                       int32_t left) {
  (void)left;
  UNROLL for (int i = 0; i < MR / 4; i++) {
    v4f sums = sum_lanes(acc + 4 * i);
    const int32_t rows = count - 4 * i;
    if (e->residual && channel < e->residual_c) {
      const float *p = e->residual + (to->pixel + 4 * i * to->pixel_step) * e->residual_c + channel;
      UNROLL for (int r = 0; r < 4; r++) {
        if (r < rows) sums[r] += p[r * to->pixel_step * e->residual_c];
      }
    }
    const int sloped = e->act == ACTIVATION_PRELU;
    sums = sloped ? bounded_prelu(sums, v4f_splat(e->slope[channel]), e) : activate(sums, e, channel);
    float *y = to->y + 4 * i * to->y_step;
    if (to->y_step == 1 && rows >= 4) {
      v4f_store(y, sums);
    } else {
      UNROLL for (int r = 0; r < 4; r++) {
        if (r < rows) y[r * to->y_step] = sums[r];
      }
    }
  }
}
