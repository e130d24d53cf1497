// The register tile of all dense products: MR rows by NR columns of sums, fed from panels of NR columns.
// Included once per file, after MR and NR are defined. acc + one row of weights + one value must fit 15 registers:
// what spills runs at half the speed.
#pragma once

#include "epilogue.h"

#define NV (NR / 4)

// One k: acc += a[.][at] * w[at][.]. The pins keep each load beside its use: loaded all at once, the values of a
// tall or wide tile would not fit the registers.
INLINE void multiply_one(v4f acc[MR][NV], const float *a[MR], const float *w, int at) {
#if MR == 1
  const v4f s = v4f_load_splat(a[0] + at);
  UNROLL for (int j = 0; j < NV; j++) {
    PIN(w);
    acc[0][j] = v4f_madd(s, v4f_load(w + at * NR + 4 * j), acc[0][j]);
    PIN(acc[0][j]);
  }
#else
  v4f b[NV];
  UNROLL for (int j = 0; j < NV; j++) b[j] = v4f_load(w + at * NR + 4 * j);
  UNROLL for (int r = 0; r < MR; r++) {
    PIN(a[r]);
    const v4f s = v4f_load_splat(a[r] + at);
    UNROLL for (int j = 0; j < NV; j++) {
      acc[r][j] = v4f_madd(s, b[j], acc[r][j]);
      PIN(acc[r][j]);
    }
  }
#endif
}

// acc += rows[MR][length] * w[length][NR]; the weights' end.
INLINE const float *multiply(v4f acc[MR][NV], const float *const rows[MR], const float *w, int32_t length) {
  const float *a[MR];
  UNROLL for (int r = 0; r < MR; r++) a[r] = rows[r];
  int32_t k = length;
  NO_UNROLL for (; k >= 4; k -= 4) {
    PIN(w);
    UNROLL for (int u = 0; u < 4; u++) multiply_one(acc, a, w, u);
    UNROLL for (int r = 0; r < MR; r++) a[r] += 4;
    w += 4 * NR;
  }
  NO_UNROLL for (; k > 0; k--) {
    PIN(w);
    multiply_one(acc, a, w, 0);
    UNROLL for (int r = 0; r < MR; r++) a[r]++;
    w += NR;
  }
  return w;
}

// Where a tile's rows go: y of the first one, and how far apart rows and their pixels (of the residual) are.
typedef struct {
  float *y;
  int32_t y_step, pixel, pixel_step;
} Target;

// acc = the panel's biases in every row
INLINE void start_tile(v4f acc[MR][NV], const float *panel) {
  UNROLL for (int j = 0; j < NV; j++) {
    const v4f bias = v4f_load(panel + 4 * j);
    UNROLL for (int r = 0; r < MR; r++) acc[r][j] = bias;
  }
}

// The usual end: whole vectors, a residual under all of them or none, a clamp or a slope.
INLINE void store_whole(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel) {
  if (e->residual && channel < e->residual_c) {
    const float *p = e->residual + to->pixel * e->residual_c + channel;
    UNROLL for (int r = 0; r < MR; r++) {
      UNROLL for (int j = 0; j < NV; j++) acc[r][j] += v4f_load(p + 4 * j);
      p += r + 1 < count ? to->pixel_step * e->residual_c : 0;
    }
  }
  if (e->act == ACT_PRELU) {
    UNROLL for (int j = 0; j < NV; j++) {
      const v4f slope = v4f_load(e->slope + channel + 4 * j);
      UNROLL for (int r = 0; r < MR; r++) acc[r][j] = prelu(acc[r][j], slope);
    }
  } else {
    const v4f lo = v4f_splat(e->lo), hi = v4f_splat(e->hi);
    UNROLL for (int r = 0; r < MR; r++) {
      UNROLL for (int j = 0; j < NV; j++) acc[r][j] = v4f_clamp(acc[r][j], lo, hi);
    }
  }
  float *y = to->y;
  UNROLL for (int r = 0; r < MR; r++) {
    if (r < count) {
      UNROLL for (int j = 0; j < NV; j++) v4f_store(y + 4 * j, acc[r][j]);
    }
    y += to->y_step;
  }
}

// Ends and stores the first `count` rows and `columns` columns; the rest are padding of the tile.
INLINE void store_tile(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel,
                       int32_t columns) {
  if (LIKELY(columns >= NR && is_plain(e, channel, NR))) {
    store_whole(acc, e, to, count, channel);
    return;
  }
  float sums[MR][NR];
  UNROLL for (int r = 0; r < MR; r++) {
    UNROLL for (int j = 0; j < NV; j++) v4f_store(&sums[r][4 * j], acc[r][j]);
  }
  for (int32_t r = 0; r < count; r++) {
    const int32_t pixel = to->pixel + r * to->pixel_step;
    finish_channels(sums[r], to->y + r * to->y_step, pixel, channel, columns < NR ? columns : NR, e);
  }
}
