// The inner loop of the tiles with one output, or three: four lanes along the depth, a vector of sums for each output of
// a pixel. For outputs so few that the lanes of a column tile would stay empty.
// Included once per file, after MR is defined and NR is less than 4.
//
//   panel  [NR], then for each four steps of the depth [NR][4]  read: the biases, then the weights
//   rows   MR of [length]  read, up to 3 floats past the end
//   Needs: MR is a multiple of 4 where NR is 1; else each length is one.
#pragma once

#include "tile_sums.h"

// acc = the bias in the first lane; the weights behind it
INLINE const float *start_tile(v4f acc[MR][NV], const float *panel) {
  UNROLL for (int j = 0; j < NR; j++) {
    const v4f bias = {panel[j], 0.0f, 0.0f, 0.0f};
    UNROLL for (int r = 0; r < MR; r++) acc[r][j] = bias;
  }
  return panel + NR;
}

// acc += rows[MR][length] * w[NR][length], lane by lane; the weights' end.
INLINE const float *multiply(v4f acc[MR][NV], const float *const rows[MR], const float *w, int32_t length) {
  const float *a[MR];
  UNROLL for (int r = 0; r < MR; r++) a[r] = rows[r];
  int32_t k = length;
  NO_UNROLL for (; k >= 4; k -= 4) {
    v4f b[NR];
    UNROLL for (int j = 0; j < NR; j++) b[j] = v4f_load(w + 4 * j);
    UNROLL for (int r = 0; r < MR; r++) {
      PIN(a[r]);
      const v4f s = v4f_load(a[r]);
      UNROLL for (int j = 0; j < NR; j++) {
        acc[r][j] = v4f_madd(s, b[j], acc[r][j]);
        if (NR > 1) PIN(acc[r][j]);
      }
      a[r] += 4;
    }
    w += 4 * NR;
  }
  if (NR == 1 && k > 0) {
    // Lanes past the end must be zero on both sides: what lies there may be a NaN.
    const v4i mask = v4i_splat(k) > (v4i){0, 1, 2, 3};
    const v4f none = v4f_splat(0.0f), b = v4f_select(mask, v4f_load(w), none);
    UNROLL for (int r = 0; r < MR; r++) {
      acc[r][0] = v4f_madd(v4f_select(mask, v4f_load(a[r]), none), b, acc[r][0]);
    }
  }
  return w + (NR == 1 ? k : 0);
}

// The sums of the lanes of four vectors.
INLINE v4f sum_lanes(const v4f sums[4]) {
  v4f pairs[2];
  UNROLL for (int i = 0; i < 2; i++) {
    const v4f a = sums[2 * i], b = sums[2 * i + 1];
    pairs[i] = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  }
  return __builtin_shufflevector(pairs[0], pairs[1], 0, 1, 4, 5) +
         __builtin_shufflevector(pairs[0], pairs[1], 2, 3, 6, 7);
}

#if NR == 3
// Ends and stores the first `count` rows and `left` columns: the sums of a row's columns are one vector.
INLINE void store_tile(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel,
                       int32_t left) {
  float sums[MR][4];
  UNROLL for (int r = 0; r < MR; r++) {
    v4f_store(sums[r], sum_lanes((const v4f[4]){acc[r][0], acc[r][1], acc[r][2], v4f_splat(0.0f)}));
  }
  float *y = to->y;
  NO_UNROLL for (int32_t r = 0; r < count; r++, y += to->y_step) {
    v4f v = v4f_load(sums[r]);
    if (e->residual) v += residual_at(e, to->pixel + r * to->pixel_step, channel);
    v4f_store_first(y, activate(v, e, channel), left < NR ? left : NR);
  }
}
#else
// Ends and stores the first `count` rows: the sums of four rows are one vector.
INLINE void store_tile(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel,
                       int32_t left) {
  (void)left;
  UNROLL for (int i = 0; i < MR / 4; i++) {
    v4f sums = sum_lanes((const v4f[4]){acc[4 * i][0], acc[4 * i + 1][0], acc[4 * i + 2][0], acc[4 * i + 3][0]});
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
#endif
