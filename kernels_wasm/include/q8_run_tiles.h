// The tiles of quantised dense products, from the sums that they start from to their results: bytes, or floats.
//
// Needs: data and results do not overlap.
#pragma once

#include "q8_block.h"
#include "q8_pairs.h"
#include "requantize.h"

enum { IN_BYTES, IN_SHORTS, IN_PAIRS, IN_QUADS };  // what a tile's products are multiplied in

// The sums that a panel starts from; `x_sums` of the pixels, four and two more of SIX, in crossed, or if what was taken
// off the weights is to be added.
INLINE void start(Tile *t, const uint8_t *panel, const int32_t *x_sums, const int32_t *more_sums, const int rows,
                  const int kind) {
  const v4i low = v4i_load(panel), high = v4i_load(panel + 16);
  if (kind == IN_SHORTS) {
    UNROLL for (int r = 0; r < rows; r++) {
      const v4i sum = group_splat((const uint8_t *)(x_sums + r));
      t->low[r] = low + sum;
      t->high[r] = high + sum;
    }
    return;
  }
  UNROLL for (int r = 0; r < rows; r++) {
    t->low[r] = low;
    t->high[r] = high;
  }
  if (LIKELY(!x_sums)) return;
  const v4i lacking_low = v4i_load(panel + 64), lacking_high = v4i_load(panel + 80);
  UNROLL for (int r = 0; r < rows; r++) {
    const v4i sum = group_splat((const uint8_t *)(r < ROWS ? x_sums + r : more_sums + r - ROWS));
    t->low[r] += lacking_low * sum;
    t->high[r] += lacking_high * sum;
  }
}

// Where results go, ROWS by COLUMNS: bytes, or floats where `is_real`.
typedef struct {
  uint8_t *y;
  int32_t step, is_real;     // step: bytes from one pixel to the next
  v4f bias_low, bias_high;   // of the panel's columns, added to floats only
  v4f lo, hi;                // bounds of floats
  Stored stored;
} Target;

// The results of a tile at `y`; of SIX rows those of the last two from `more` on.
INLINE void finish(const Tile *t, const uint8_t *panel, const Target *to, uint8_t *y, uint8_t *more, const int rows) {
  const v4f low = v4f_load(panel + 32), high = v4f_load(panel + 48);
  const int32_t step = to->step;
  if (UNLIKELY(to->is_real)) {
    UNROLL for (int r = 0; r < rows; r++) {
      float *real = (float *)(r < ROWS ? y + r * step : more + (r - ROWS) * step);
      v4f_store(real, v4f_clamp(v4f_from_i32(t->low[r]) * low + to->bias_low, to->lo, to->hi));
      v4f_store(real + 4, v4f_clamp(v4f_from_i32(t->high[r]) * high + to->bias_high, to->lo, to->hi));
    }
    return;
  }
  const Stored stored = to->stored;
  v8s shorts[SIX];
  UNROLL for (int r = 0; r < rows; r++) {
    shorts[r] = v8s_narrow(requantize(t->low[r], low, &stored), requantize(t->high[r], high, &stored));
  }
#if SIMD
  UNROLL for (int r = 0; r + 1 < rows; r += 2) {
    const v16u bytes = stored_pair(shorts[r], shorts[r + 1], &stored);
    uint8_t *at = r < ROWS ? y + r * step : more;
    store_eight(at, bytes);
    wasm_v128_store64_lane(at + step, (v128_t)bytes, 1);
  }
  if (rows == 1) store_eight(y, stored_pair(shorts[0], shorts[0], &stored));
#else
  UNROLL for (int r = 0; r < rows; r++) {
    store_eight(r < ROWS ? y + r * step : more + (r - ROWS) * step, stored_pair(shorts[r], shorts[r], &stored));
  }
#endif
}

// Three tiles of bytes as two of six pixels: twelve sums at a time hide how long one dot product takes, eight do not.
INLINE void run_three(const Pixels *pixels, const uint8_t *panel, int32_t groups, const Target *to, uint8_t *y) {
  const int32_t *sums = (const int32_t *)pixels->x_sums;
  // The first tile and half of the second, then the last one and the other half.
  NO_UNROLL for (int half = 0; half < 2; half++) {
    const int four = 2 * half, two = ROWS + 2 * half;
    const uint8_t *a = pixels->groups, *b = a + pixels->groups_step;
    Tile t;
    start(&t, panel, sums ? sums + ROWS * four : 0, sums ? sums + two : 0, SIX, IN_BYTES);
    multiply(&t, a + four * pixels->groups_step, b + GROUP * four, panel + HEAD, groups, SIX, 0);
    finish(&t, panel, to, y + ROWS * four * to->step, y + two * to->step, SIX);
  }
}

// The sums of one tile.
INLINE void sum_tile(Tile *t, const Pixels *pixels, const uint8_t *panel, int32_t groups, const int rows,
                     const int kind) {
  start(t, panel, kind >= IN_PAIRS ? 0 : (const int32_t *)pixels->x_sums, 0, rows, kind);
  if (kind == IN_QUADS) {
    multiply_quads(t, pixels, panel, groups);
  } else if (kind == IN_PAIRS) {
    multiply_pairs(t, pixels, panel, groups, rows);
  } else if (kind == IN_SHORTS) {
    multiply_crossed(t, pixels->groups, panel + HEAD, groups, rows);
  } else {
    multiply(t, pixels->groups, 0, panel + HEAD, groups, rows, 0);
  }
}

// So many whole tiles whose pixels and results lie behind each other.
INLINE void run_tiles(const Pixels *from, const uint8_t *panel, int32_t groups, const Target *to, int32_t tiles,
                      const int kind) {
  Pixels pixels = *from;
  uint8_t *y = to->y;
  for (int32_t done = 0; tiles > 0; tiles -= done) {
    done = kind == IN_BYTES && tiles >= 3 ? 3 : 1;
    if (done == 3) {
      run_three(&pixels, panel, groups, to, y);
    } else {
      Tile t;
      sum_tile(&t, &pixels, panel, groups, ROWS, kind);
      finish(&t, panel, to, y, 0, ROWS);
    }
    y += done * ROWS * to->step;
    pixels.groups += done * pixels.groups_step;
    pixels.lines += done * ROWS * pixels.stride;
    if (kind < IN_PAIRS && pixels.x_sums) pixels.x_sums += done;
  }
}

// One function for each kind: what the loops of one keep in registers is no burden to the others'.
#define TILES(NAME, KIND)                                                                                             \
  static __attribute__((noinline)) void NAME(const Pixels *from, const uint8_t *panel, int32_t groups,                \
                                             const Target *to, int32_t tiles) {                                       \
    run_tiles(from, panel, groups, to, tiles, KIND);                                                                  \
  }
TILES(tiles_of_bytes, IN_BYTES)
TILES(tiles_of_shorts, IN_SHORTS)
TILES(tiles_of_pairs, IN_PAIRS)
TILES(tiles_of_quads, IN_QUADS)

INLINE void tiles_of_four(const Form *form, const Pixels *from, const uint8_t *panel, int32_t groups,
                          const Target *to, int32_t tiles) {
  if (IS_PAIRED(form)) {
    if (has_quads(panel, groups)) return tiles_of_quads(from, panel, groups, to, tiles);
    return tiles_of_pairs(from, panel, groups, to, tiles);
  }
  if (IS_WIDE(form)) return tiles_of_shorts(from, panel, groups, to, tiles);
  return tiles_of_bytes(from, panel, groups, to, tiles);
}

static __attribute__((noinline)) void tile_of_one(const Form *form, const Pixels *from, const uint8_t *panel,
                                                  int32_t groups, const Target *to) {
  Tile t;
  if (IS_PAIRED(form)) {
    sum_tile(&t, from, panel, groups, 1, IN_PAIRS);
  } else if (IS_WIDE(form)) {
    sum_tile(&t, from, panel, groups, 1, IN_SHORTS);
  } else {
    sum_tile(&t, from, panel, groups, 1, IN_BYTES);
  }
  finish(&t, panel, to, to->y, 0, 1);
}
