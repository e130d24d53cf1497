// The inner loop of the tiles with one output: four lanes along the depth, one vector of sums a pixel.
// For outputs so few that the lanes of a column tile would stay empty. Included by product_tile.h.
#pragma once

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

// Moves the sum of the lanes into the first one.
INLINE void finish_sums(v4f acc[MR][NV]) {
  UNROLL for (int r = 0; r < MR; r++) {
    const v4f pairs = acc[r][0] + __builtin_shufflevector(acc[r][0], acc[r][0], 2, 3, 0, 1);
    acc[r][0] = pairs + __builtin_shufflevector(pairs, pairs, 1, 0, 3, 2);
  }
}

// The activation of every sum: those of four pixels are one vector.
INLINE void activate_tile(v4f acc[MR][NV], const Epilogue *e, int32_t channel, int32_t columns) {
  (void)columns;
  UNROLL for (int r = 0; r < MR; r += 4) {
    v4f sums = {acc[r][0][0], acc[r + 1][0][0], acc[r + 2][0][0], acc[r + 3][0][0]};
    if (e->act == ACT_PRELU) {
      sums = prelu(sums, v4f_splat(e->slope[channel]));
    } else {
      sums = activate(sums, e, channel);
    }
    UNROLL for (int i = 0; i < 4; i++) acc[r + i][0] = v4f_splat(sums[i]);
  }
}
