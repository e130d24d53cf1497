// What quantised dense products share: tiles of Q8_ROWS pixels by Q8_COLUMNS outputs, exact sums of int32.
//
// Pixels are brought together in blocks (q8_block.h) that stay in the first cache: as bytes where the engine's dot
// products of bytes are exact, else widened to int16. Results are bytes, or floats.
// Needs: data and results do not overlap. Units: tiles of Q8_ROWS pixels.
#pragma once

#include "lanes.h"
#include "q8_block.h"
#include "q8_pairs.h"
#include "requantize.h"

enum { BLOCK = 16384, BLOCK_TILES = BLOCK / (16 * ROWS) };  // BLOCK: bytes, two of them on the stack
_Static_assert(PAIRS_DEPTH * ROWS <= BLOCK, "sums in pairs are never in parts");

// The sums that a panel starts from; `x_sums` of the tile's pixels, if what was taken off the weights is to be added.
INLINE void start(Tile *t, const uint8_t *panel, const v4i *x_sums, const int rows) {
  const v4i low = v4i_load(panel), high = v4i_load(panel + 16);
  UNROLL for (int r = 0; r < rows; r++) {
    t->low[r] = low;
    t->high[r] = high;
  }
  if (LIKELY(!x_sums)) return;
  const v4i lacking_low = v4i_load(panel + 64), lacking_high = v4i_load(panel + 80);
  UNROLL for (int r = 0; r < rows; r++) {
    t->low[r] += lacking_low * (*x_sums)[r];
    t->high[r] += lacking_high * (*x_sums)[r];
  }
}

// Where results go: bytes, or floats where `is_real`.
typedef struct {
  uint8_t *y;
  const float *bias;  // of the panel's columns, or 0; added to floats only
  int32_t y_step, columns, is_real;  // y_step: bytes from one pixel to the next
  float lo, hi;                      // bounds of floats
  Stored stored;
} Target;

// The sums of columns first to first + 3 as floats; those past the last column are dropped.
INLINE void finish_real(v4i sums, v4f scales, const Target *to, uint8_t *y, int32_t first) {
  if (first >= to->columns) return;
  const v4f bias = to->bias ? v4f_load_lanes(to->bias + first, to->columns - first) : v4f_splat(0.0f);
  const v4f real = v4f_from_i32(sums) * scales + bias;
  v4f_store_lanes((float *)y + first, v4f_clamp(real, v4f_splat(to->lo), v4f_splat(to->hi)), to->columns - first);
}

INLINE void finish(const Tile *t, const uint8_t *panel, const Target *to, const int rows, int32_t count) {
  const v4f scale_low = v4f_load(panel + 32), scale_high = v4f_load(panel + 48);
  const Stored stored = to->stored;
  const int32_t columns = to->columns, step = to->y_step;
  uint8_t *y = to->y;
  if (to->is_real) {
    UNROLL for (int r = 0; r < rows; r++) {
      if (r < count) {
        finish_real(t->low[r], scale_low, to, y + r * step, 0);
        finish_real(t->high[r], scale_high, to, y + r * step, 4);
      }
    }
    return;
  }
  v8s shorts[ROWS];
  UNROLL for (int r = 0; r < rows; r++) {
    shorts[r] = v8s_narrow(requantize(t->low[r], scale_low, &stored), requantize(t->high[r], scale_high, &stored));
  }
#if SIMD
  if (LIKELY(columns >= COLUMNS && count == rows && rows == ROWS)) {
    UNROLL for (int r = 0; r + 1 < rows; r += 2) {
      store_pair(y + r * step, y + (r + 1) * step, stored_pair(shorts[r], shorts[r + 1], &stored), COLUMNS);
    }
    return;
  }
#endif
  UNROLL for (int r = 0; r < rows; r++) {
    if (r < count) store_bytes(y + r * step, stored_pair(shorts[r], shorts[r], &stored), columns);
  }
}

// One tile, whose pixels and sums lie at `a` and `x_sums`.
INLINE void tile_of(const Form *form, const uint8_t *a, const uint8_t *panel, const v4i *x_sums, int32_t groups,
                    const Target *to, const int rows, int32_t count) {
  Tile t;
  start(&t, panel, x_sums, rows);
  if (IS_WIDE(form)) {
    multiply(&t, a, panel + HEAD, groups, rows, 1);
  } else if (IS_PAIRED(form)) {
    multiply_pairs(&t, a, panel, groups, rows);
  } else {
    multiply(&t, a, panel + HEAD, groups, rows, 0);
  }
  finish(&t, panel, to, rows, count);
}

// A tile of four pixels, of which `count` exist; the others are computed from stale bytes and dropped.
static __attribute__((noinline)) void tile_of_four(const Form *form, const uint8_t *a, const uint8_t *panel,
                                                   const v4i *x_sums, int32_t groups, const Target *to, int32_t count) {
  tile_of(form, a, panel, x_sums, groups, to, ROWS, count);
}

static __attribute__((noinline)) void tile_of_one(const Form *form, const uint8_t *a, const uint8_t *panel,
                                                  const v4i *x_sums, int32_t groups, const Target *to) {
  tile_of(form, a, panel, x_sums, groups, to, 1, 1);
}

// A tile whose sums are too long for the block: `part` of them at a time.
static __attribute__((noinline)) void long_tile(const Source *s, uint8_t *scratch, uint8_t *block, int32_t pixel,
                                                int32_t depth, int32_t part, const uint8_t *panel, const Target *to,
                                                int32_t count) {
  Tile t;
  start(&t, panel, 0, ROWS);
  const v4i lacking_low = v4i_load(panel + 64), lacking_high = v4i_load(panel + 80);
  const uint8_t *w = panel + HEAD;
  for (int32_t k = 0; k < depth; k += part) {
    const int32_t n = depth - k < part ? depth - k : part, groups = groups_of(&s->form, n);
    for (int32_t r = 0; r < count; r++) {
      const Place place = place_of(s, pixel + r);
      bring_pixel(s, &place, k, n, scratch + r * part * s->form.size);
    }
    interleave(scratch, part * s->form.size, n * s->form.size, block);
    if (IS_WIDE(&s->form)) {
      multiply(&t, block, w, groups, ROWS, 1);
    } else {
      multiply(&t, block, w, groups, ROWS, 0);
      const v4i x_sums = sums_of(block, n, ROWS);
      UNROLL for (int r = 0; r < ROWS; r++) {
        t.low[r] += lacking_low * x_sums[r];
        t.high[r] += lacking_high * x_sums[r];
      }
    }
    w += groups * GROUP * COLUMNS;
  }
  finish(&t, panel, to, ROWS, count);
}

// Whether anything was taken off the weights of a panel.
INLINE int32_t lacks_any(const Form *form, const uint8_t *w, int32_t size, int32_t co) {
  v4i all = v4i_splat(0);
  if (IS_WIDE(form) || IS_PAIRED(form)) return 0;
  for (int32_t column = 0; column < co; column += COLUMNS, w += size) all |= v4i_load(w + 64) | v4i_load(w + 80);
  return v4i_any(all);
}

// The tiles [begin, end) of `pixels` pixels with `co` outputs each.
static void multiply_tiles(const Source *s, const uint8_t *w, Target to, int32_t pixels, int32_t co, int32_t begin,
                           int32_t end) {
  const Form *form = &s->form;
  const int32_t depth = s->kh * s->kw * s->ci, groups = groups_of(form, depth), size = to.is_real ? 4 : 1;
  const float *bias = to.bias;
  uint8_t *y = to.y;
  const int32_t most = BLOCK / (ROWS * form->size), is_long = depth > most;
  const int32_t stride = (depth * form->size + 15) / 16 * 16, fitting = is_long ? 1 : BLOCK / (ROWS * stride);
  const int32_t results = BLOCK / 2 / (ROWS * co);  // tiles whose results stay in the first cache
  const int32_t wanted = results > 8 ? results : 8;
  const int32_t block_tiles = wanted < fitting ? wanted : fitting;
  const int32_t panel_size = panel_bytes(form, depth), lacks = lacks_any(form, w, panel_size, co);
  uint8_t scratch[BLOCK + 16], block[BLOCK + 16];
  v4i x_sums[BLOCK_TILES];

  for (int32_t tile = begin, tiles; tile < end; tile += tiles) {
    tiles = end - tile < block_tiles ? end - tile : block_tiles;
    const int32_t first = tile * ROWS, last = (tile + tiles) * ROWS < pixels ? (tile + tiles) * ROWS : pixels;
    if (!is_long) {
      fill_block(s, first, last, stride, scratch, block);
      for (int32_t i = 0; lacks && i < tiles; i++) {
        x_sums[i] = sums_of(block + i * ROWS * stride, depth, last - first - i * ROWS == 1 ? 1 : ROWS);
      }
    }
    for (int32_t column = 0; column < co; column += COLUMNS) {
      const uint8_t *panel = w + column / COLUMNS * panel_size;
      to.columns = co - column < COLUMNS ? co - column : COLUMNS;
      to.bias = bias ? bias + column : 0;
      for (int32_t p = first; p < last; p += ROWS) {
        const int32_t count = last - p < ROWS ? last - p : ROWS;
        const uint8_t *a = block + (p - first) * stride;
        const v4i *sums = lacks ? x_sums + (p - first) / ROWS : 0;
        to.y = y + p * to.y_step + column * size;
        if (is_long) {
          long_tile(s, scratch, block, p, depth, most, panel, &to, count);
        } else if (count == 1) {
          tile_of_one(form, a, panel, sums, groups, &to);
        } else {
          tile_of_four(form, a, panel, sums, groups, &to, count);
        }
      }
    }
  }
}
