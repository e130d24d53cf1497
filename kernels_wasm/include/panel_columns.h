// The inner loop and the activation of the tiles with NR columns in lanes.
// Included once per file, after MR and NR are defined.
//
//   panels  PANELS of [PANEL + length * PANEL]  read: biases, then a row of weights for each step of the depth
//   rows   MR of [length]      read
#pragma once

#include "tile_sums.h"

#if PANELS == 1
INLINE v4f load_columns(Columns w, int at, int j) { return v4f_load(w + at * NR + 4 * j); }
INLINE Columns next_rows(Columns w, int32_t rows) { return w + rows * NR; }
#define PIN_COLUMNS(w, j) PIN(w)
#else
#define PANEL_VECTORS (PANEL / 4)
INLINE v4f load_columns(Columns w, int at, int j) {
  return v4f_load(w.of[j / PANEL_VECTORS] + at * PANEL + 4 * (j % PANEL_VECTORS));
}
INLINE Columns next_rows(Columns w, int32_t rows) {
  UNROLL for (int p = 0; p < PANELS; p++) w.of[p] += rows * PANEL;
  return w;
}
#define PIN_COLUMNS(w, j) PIN(w.of[(j) / PANEL_VECTORS])
#endif

// acc = the panels' biases in every row; the weights behind them
INLINE Columns start_tile(v4f acc[MR][NV], Columns panels) {
  UNROLL for (int j = 0; j < NV; j++) {
    const v4f bias = load_columns(panels, 0, j);
    UNROLL for (int r = 0; r < MR; r++) acc[r][j] = bias;
  }
  return next_rows(panels, 1);
}

// One k: acc += a[.][at] * w[at][.]. The pins keep each load beside its use: loaded all at once, the values of a
// tall or wide tile would not fit the registers.
INLINE void multiply_one(v4f acc[MR][NV], const float *a[MR], Columns w, int at) {
#if MR == 1
  const v4f s = v4f_load_splat(a[0] + at);
  UNROLL for (int j = 0; j < NV; j++) {
    PIN_COLUMNS(w, j);
    acc[0][j] = v4f_madd(s, load_columns(w, at, j), acc[0][j]);
    PIN(acc[0][j]);
  }
#else
  v4f b[NV];
  UNROLL for (int j = 0; j < NV; j++) b[j] = load_columns(w, at, j);
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

#if GATHERS && MR > 1
// Two k: acc += a[.][0..1] * w[0..1][.], the first nv vectors of columns.
INLINE void multiply_two(v4f acc[MR][NV], const float *const a[MR], Columns w, const int nv) {
  v4f b[2][NV];
  UNROLL for (int u = 0; u < 2; u++) {
    UNROLL for (int j = 0; j < nv; j++) b[u][j] = load_columns(w, u, j);
  }
  UNROLL for (int r = 0; r < MR; r++) v4f_madd_two(acc[r], v4f_load_half(a[r]), b[0], b[1], nv);
}
#endif

// acc += rows[MR][length] * w[length][NR]; the weights' end.
INLINE Columns multiply(v4f acc[MR][NV], const float *const rows[MR], Columns w, int32_t length) {
  const float *a[MR];
  UNROLL for (int r = 0; r < MR; r++) a[r] = rows[r];
  int32_t k = length;
#if GATHERS && MR > 1
  NO_UNROLL for (; k >= 2; k -= 2) {
    UNROLL for (int p = 0; p < PANELS; p++) PIN_COLUMNS(w, p * (PANEL / 4));
    UNROLL for (int r = 0; r < MR; r++) PIN(a[r]);
    multiply_two(acc, a, w, NV);
    UNROLL for (int r = 0; r < MR; r++) a[r] += 2;
    w = next_rows(w, 2);
  }
#else
  NO_UNROLL for (; k >= 4; k -= 4) {
    UNROLL for (int p = 0; p < PANELS; p++) PIN_COLUMNS(w, p * (PANEL / 4));
    UNROLL for (int u = 0; u < 4; u++) multiply_one(acc, a, w, u);
    UNROLL for (int r = 0; r < MR; r++) a[r] += 4;
    w = next_rows(w, 4);
  }
#endif
  NO_UNROLL for (; k > 0; k--) {
    UNROLL for (int p = 0; p < PANELS; p++) PIN_COLUMNS(w, p * (PANEL / 4));
    multiply_one(acc, a, w, 0);
    UNROLL for (int r = 0; r < MR; r++) a[r]++;
    w = next_rows(w, 1);
  }
  return w;
}

// The activation of every sum, if it is no curve. An infinite bound is not worth its instructions.
INLINE void activate_tile(v4f acc[MR][NV], const Epilogue *e, int32_t channel, int32_t columns) {
  if (LIKELY(e->act == ACTIVATION_CLAMP)) {
    if (e->lo > -__builtin_inff()) {
      const v4f lo = v4f_splat(e->lo);
      EACH_SUM(acc[r][j] = v4f_max(acc[r][j], lo));
    }
    if (e->hi < __builtin_inff()) {
      const v4f hi = v4f_splat(e->hi);
      EACH_SUM(acc[r][j] = v4f_min(acc[r][j], hi));
    }
  } else if (e->act == ACTIVATION_PRELU) {
    v4f slope[NV];
    UNROLL for (int j = 0; j < NV; j++) {
      slope[j] = 4 * j < columns ? v4f_load(e->slope + channel + 4 * j) : v4f_splat(0.0f);
    }
    EACH_SUM(acc[r][j] = prelu(acc[r][j], slope[j]));
    if (e->lo > -__builtin_inff()) {
      const v4f lo = v4f_splat(e->lo);
      EACH_SUM(acc[r][j] = v4f_max(acc[r][j], lo));
    }
  }
}

// What the activation of a call needs to know, as integers: a test of a float would be repeated for every tile.
typedef struct {
  int32_t below, above;  // whether ACTIVATION_CLAMP has bounds
  int32_t stored;        // whether a curve is computed of what was stored
} Ending;

INLINE Ending find_ending(const Epilogue *e) {
  const int clamps = e->act == ACTIVATION_CLAMP;
  Ending ending = {clamps && e->lo > -__builtin_inff(), clamps && e->hi < __builtin_inff(), ends_stored(e)};
  PIN(ending.below);
  PIN(ending.above);
  PIN(ending.stored);
  return ending;
}

// The same for the first nv vectors of columns, all of which exist. Needs: ACTIVATION_CLAMP,
// or ACTIVATION_PRELU with finite slopes.
INLINE void activate_whole(v4f acc[MR][NV], const Epilogue *e, const int act, const Ending *ending, int32_t channel,
                           const int nv) {
  if (act == ACTIVATION_PRELU) {
    const v4f zero = v4f_splat(0.0f);
    UNROLL for (int j = 0; j < nv; j++) {
      const v4f slope = v4f_load(e->slope + channel + 4 * j);
      UNROLL for (int r = 0; r < MR; r++) {
        const v4f negative = v4f_min(acc[r][j], zero);
        acc[r][j] = v4f_madd(negative, slope, v4f_max(acc[r][j], zero));
        PIN(acc[r][j]);
      }
    }
    return;
  }
  if (ending->below) {
    const v4f lo = v4f_splat(e->lo);
    UNROLL for (int r = 0; r < MR; r++) {
      UNROLL for (int j = 0; j < nv; j++) acc[r][j] = v4f_max(acc[r][j], lo);
    }
  }
  if (ending->above) {
    const v4f hi = v4f_splat(e->hi);
    UNROLL for (int r = 0; r < MR; r++) {
      UNROLL for (int j = 0; j < nv; j++) acc[r][j] = v4f_min(acc[r][j], hi);
    }
  }
}
