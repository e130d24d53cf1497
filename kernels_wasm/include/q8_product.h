// What quantised dense products share: tiles of Q8_ROWS pixels by Q8_COLUMNS outputs, exact sums of int32.
//
// Pixels are widened to int16 in blocks (q8_block.h) that stay in the first cache. Results are bytes, or floats.
// Needs: data and results do not overlap. Units: tiles of Q8_ROWS pixels.
#pragma once

#include "lanes.h"
#include "q8_block.h"
#include "requantize.h"

enum { COLUMNS = Q8_COLUMNS, HEAD = Q8_HEAD_BYTES / 2, BLOCK = 8192 };  // BLOCK: int16 units, two of them on the stack

INLINE v8s pair_splat(const int16_t *a) { return (v8s)v4f_load_splat((const float *)a); }

typedef struct {
  v4i low[ROWS], high[ROWS];  // columns 0..3 and 4..7
} Tile;

// The sums that a panel starts from.
INLINE void start(Tile *t, const int16_t *panel, const int rows) {
  UNROLL for (int r = 0; r < rows; r++) {
    t->low[r] = v4i_load(panel);
    t->high[r] = v4i_load(panel + 8);
  }
}

// t += a[pairs][rows][2] * b[pairs][8][2]
INLINE void multiply(Tile *t, const int16_t *a, const int16_t *b, int32_t pairs, const int rows) {
  NO_UNROLL for (; pairs > 0; pairs--, a += 2 * rows, b += 2 * COLUMNS) {
    PIN(a);
    PIN(b);
    const v8s b_low = v8s_load(b), b_high = v8s_load(b + COLUMNS);
    UNROLL for (int r = 0; r < rows; r++) {
      const v8s pair = pair_splat(a + 2 * r);
      t->low[r] += v4i_dot_i16(pair, b_low);
      t->high[r] += v4i_dot_i16(pair, b_high);
    }
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
INLINE void finish_real(v4i sums, const float *panel, const Target *to, uint8_t *y, int32_t first) {
  if (first >= to->columns) return;
  const v4f bias = to->bias ? v4f_load_lanes(to->bias + first, to->columns - first) : v4f_splat(0.0f);
  const v4f real = v4f_from_i32(sums) * v4f_load(panel + first) + bias;
  v4f_store_lanes((float *)y + first, v4f_clamp(real, v4f_splat(to->lo), v4f_splat(to->hi)), to->columns - first);
}

INLINE void finish(const Tile *t, const int16_t *panel, const Target *to, const int rows, int32_t count) {
  const v4f scale_low = v4f_load(panel + 16), scale_high = v4f_load(panel + 24);
  const Stored stored = to->stored;
  const int32_t columns = to->columns, step = to->y_step;
  uint8_t *y = to->y;
  if (to->is_real) {
    const float *scales = (const float *)(panel + 16);
    UNROLL for (int r = 0; r < rows; r++) {
      if (r < count) {
        finish_real(t->low[r], scales, to, y + r * step, 0);
        finish_real(t->high[r], scales, to, y + r * step, 4);
      }
    }
    return;
  }
  v16u bytes[ROWS];
  UNROLL for (int r = 0; r < rows; r++) {
    const v4i low = requantize(t->low[r], scale_low, &stored), high = requantize(t->high[r], scale_high, &stored);
    bytes[r] = stored_bytes(low, high, &stored);
  }
  if (LIKELY(columns >= COLUMNS && count == rows)) {
    UNROLL for (int r = 0; r < rows; r++) store_eight(y + r * step, bytes[r]);
  } else {
    UNROLL for (int r = 0; r < rows; r++) {
      if (r < count) store_bytes(y + r * step, bytes[r], columns);
    }
  }
}

// A tile of `rows` pixels, of which `count` exist; the others are computed from stale shorts and dropped.
static __attribute__((noinline)) void tile_of_four(const int16_t *a, const int16_t *panel, int32_t pairs,
                                                   const Target *to, int32_t count) {
  Tile t;
  start(&t, panel, ROWS);
  multiply(&t, a, panel + HEAD, pairs, ROWS);
  finish(&t, panel, to, ROWS, count);
}

static __attribute__((noinline)) void tile_of_one(const int16_t *a, const int16_t *panel, int32_t pairs,
                                                  const Target *to) {
  Tile t;
  start(&t, panel, 1);
  multiply(&t, a, panel + HEAD, pairs, 1);
  finish(&t, panel, to, 1, 1);
}

// A tile whose sums are too long for the block: `part` of them at a time.
static __attribute__((noinline)) void long_tile(const Source *s, int16_t *scratch, int16_t *block, int32_t pixel,
                                                int32_t depth, int32_t part, const int16_t *panel, const Target *to,
                                                int32_t count) {
  Tile t;
  start(&t, panel, ROWS);
  for (int32_t k = 0; k < depth; k += part) {
    const int32_t n = depth - k < part ? depth - k : part;
    for (int32_t r = 0; r < count; r++) {
      const Place place = place_of(s, pixel + r);
      widen_pixel(s, &place, k, n, scratch + r * part);
    }
    interleave(scratch, part, n, block);
    multiply(&t, block, panel + HEAD + k * COLUMNS, (n + 1) / 2, ROWS);
  }
  finish(&t, panel, to, ROWS, count);
}

// The tiles [begin, end) of `pixels` pixels with `co` outputs each.
static void multiply_tiles(const Source *s, const int16_t *w, Target to, int32_t pixels, int32_t co, int32_t begin,
                           int32_t end) {
  const int32_t depth = s->kh * s->kw * s->ci, pairs = (depth + 1) / 2, size = to.is_real ? 4 : 1;
  const float *bias = to.bias;
  uint8_t *y = to.y;
  const int32_t most = BLOCK / ROWS, is_long = depth > most;
  const int32_t stride = (depth + 7) / 8 * 8, fitting = is_long ? 1 : BLOCK / (ROWS * stride);
  const int32_t wanted = BLOCK / (ROWS * co) > 8 ? BLOCK / (ROWS * co) : 8;  // results that stay in the first cache
  const int32_t block_tiles = wanted < fitting ? wanted : fitting;
  const int32_t panel_size = HEAD + pairs * 2 * COLUMNS;
  int16_t scratch[BLOCK + 8], block[BLOCK + 8];

  for (int32_t tile = begin, tiles; tile < end; tile += tiles) {
    tiles = end - tile < block_tiles ? end - tile : block_tiles;
    const int32_t first = tile * ROWS, last = (tile + tiles) * ROWS < pixels ? (tile + tiles) * ROWS : pixels;
    if (!is_long) fill_block(s, first, last, stride, scratch, block);
    for (int32_t column = 0; column < co; column += COLUMNS) {
      const int16_t *panel = w + column / COLUMNS * panel_size;
      to.columns = co - column < COLUMNS ? co - column : COLUMNS;
      to.bias = bias ? bias + column : 0;
      for (int32_t p = first; p < last; p += ROWS) {
        const int32_t count = last - p < ROWS ? last - p : ROWS;
        const int16_t *a = block + (p - first) * stride;
        to.y = y + p * to.y_step + column * size;
        if (is_long) {
          long_tile(s, scratch, block, p, depth, most, panel, &to, count);
        } else if (count == 1) {
          tile_of_one(a, panel, pairs, &to);
        } else {
          tile_of_four(a, panel, pairs, &to, count);
        }
      }
    }
  }
}
