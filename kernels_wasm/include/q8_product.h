// What quantised dense products share: tiles of Q8_ROWS pixels by Q8_COLUMNS outputs, exact sums of int32.
//
// Pixels are brought together in blocks (q8_block.h) that stay in the first cache: as bytes where the engine's dot
// products of bytes are exact, else widened to int16. Results are bytes, or floats.
// Needs: data and results do not overlap. Units: tiles of Q8_ROWS pixels.
#pragma once

#include "lanes.h"
#include "q8_run_tiles.h"

enum { BLOCK = 16384, BLOCK_TILES = BLOCK / (16 * ROWS) };  // BLOCK: bytes, two of them on the stack
_Static_assert(PAIRS_DEPTH * ROWS <= BLOCK, "sums in pairs are never in parts");

// A tile whose sums are too long for the block: `part` of them at a time.
static __attribute__((noinline)) void long_tile(const Source *s, uint8_t *scratch, uint8_t *block, int32_t pixel,
                                                int32_t depth, int32_t part, const uint8_t *panel, const Target *to,
                                                int32_t count) {
  Tile t;
  start(&t, panel, 0, 0, ROWS, IN_BYTES);
  const v4i lacking_low = v4i_load(panel + 64), lacking_high = v4i_load(panel + 80);
  const uint8_t *w = panel + HEAD;
  for (int32_t k = 0; k < depth; k += part) {
    const int32_t n = depth - k < part ? depth - k : part, groups = groups_of(&s->form, n);
    for (int32_t r = 0; r < count; r++) {
      const Place place = place_of(s, pixel + r);
      bring_pixel(s, &place, k, n, scratch + r * part);
    }
    bring_interleaved(scratch, part, n, &s->form, block);
    if (IS_WIDE(&s->form)) {
      const v4i sums = twins_of(block, groups, ROWS);
      UNROLL for (int r = 0; r < ROWS; r++) {
        t.low[r] += v4i_splat(sums[r]);
        t.high[r] += v4i_splat(sums[r]);
      }
      multiply_crossed(&t, block, w, groups, ROWS);
    } else {
      multiply(&t, block, 0, w, groups, ROWS, 0);
      const v4i x_sums = sums_of(block, n, ROWS);
      UNROLL for (int r = 0; r < ROWS; r++) {
        t.low[r] += lacking_low * x_sums[r];
        t.high[r] += lacking_high * x_sums[r];
      }
    }
    w += groups * GROUP * COLUMNS;
  }
  finish(&t, panel, to, to->y, 0, ROWS);
}

// Whether anything was taken off the weights of a panel.
INLINE int32_t lacks_any(const Form *form, const uint8_t *w, int32_t size, int32_t co) {
  v4i all = v4i_splat(0);
  if (IS_WIDE(form)) return 1;
  if (IS_PAIRED(form)) return 0;
  for (int32_t column = 0; column < co; column += COLUMNS, w += size) all |= v4i_load(w + 64) | v4i_load(w + 80);
  return v4i_any(all);
}

// The results of a tile of which only some rows and columns exist, from where all were put.
static void put_part(const uint8_t *from, uint8_t *y, int32_t step, int32_t rows, int32_t bytes, int32_t from_step) {
  for (int32_t r = 0; r < rows; r++, y += step, from += from_step) {
    for (int32_t i = 0; i < bytes; i++) y[i] = from[i];
  }
}

// The tiles [begin, end) of `pixels` pixels with `co` outputs each; `to` is that of the first pixel and output.
static void multiply_tiles(const Source *s, const uint8_t *w, const float *bias, Target to, int32_t pixels, int32_t co,
                           int32_t begin, int32_t end) {
  const Form *form = &s->form;
  const int32_t depth = s->kh * s->kw * s->ci, groups = groups_of(form, depth), size = to.is_real ? 4 : 1;
  const int32_t most = BLOCK / (ROWS * form->size), is_long = depth > most;
  const int32_t stride = (depth * form->size + 15) / 16 * 16, fitting = is_long ? 1 : BLOCK / (ROWS * stride);
  const int32_t results = BLOCK / 2 / (ROWS * co);  // tiles whose results stay in the first cache
  const int32_t wanted = results > 8 ? results : 8;
  const int32_t most_tiles = wanted < fitting ? wanted : fitting, is_bytes = !IS_PAIRED(form) && !IS_WIDE(form);
  const int32_t block_tiles = is_bytes && most_tiles >= 3 ? most_tiles / 3 * 3 : most_tiles;
  const int32_t panel_size = panel_bytes(form, depth), lacks = lacks_any(form, w, panel_size, co);
  uint8_t scratch[BLOCK + 16], block[BLOCK + 16], part[ROWS * COLUMNS * 4];
  v4i x_sums[BLOCK_TILES];
  uint8_t *y = to.y;
  const int32_t step = to.step;
  Target aside = to;
  aside.y = part;
  aside.step = COLUMNS * size;

  for (int32_t tile = begin, tiles; tile < end; tile += tiles) {
    tiles = end - tile < block_tiles ? end - tile : block_tiles;
    const int32_t first = tile * ROWS, last = (tile + tiles) * ROWS < pixels ? (tile + tiles) * ROWS : pixels;
    if (!is_long) {
      fill_block(s, first, last, stride, scratch, block);
      for (int32_t i = 0; lacks && i < tiles; i++) {
        const int32_t rows = last - first - i * ROWS == 1 ? 1 : ROWS;
        const uint8_t *tile_at = block + i * ROWS * stride;
        x_sums[i] = IS_WIDE(form) ? twins_of(tile_at, groups, rows) : sums_of(tile_at, depth, rows);
      }
    }
    const uint8_t *panel = w;
    for (int32_t column = 0; column < co; column += COLUMNS, panel += IS_PAIRED(form) ? bytes_of_paired(panel) : panel_size) {
      const int32_t columns = co - column < COLUMNS ? co - column : COLUMNS;
      if (bias) {
        to.bias_low = aside.bias_low = v4f_load_lanes(bias + column, columns);
        to.bias_high = aside.bias_high = v4f_load_lanes(bias + column + 4, columns - 4);
      }
      for (int32_t p = first, count; p < last; p += count) {
        const int32_t rest = last - p, is_whole = columns == COLUMNS && rest >= ROWS && !is_long;
        const Lines lines = lines_of(s, first, last, p, scratch);
        const Pixels found = {block + (p - first) * stride, line_of(&lines, p), ROWS * stride, lines.stride, form->flip,
                              lacks ? x_sums + (p - first) / ROWS : 0};
        uint8_t *at = y + p * step + column * size;
        to.y = at;
        count = is_whole ? rest / ROWS * ROWS : rest < ROWS ? rest : ROWS;
        if (is_whole) {
          tiles_of_four(form, &found, panel, groups, &to, count / ROWS);
          continue;
        }
        if (is_long) {
          long_tile(s, scratch, block, p, depth, most, panel, &aside, count);
        } else if (count == 1) {
          tile_of_one(form, &found, panel, groups, &aside);
        } else {
          tiles_of_four(form, &found, panel, groups, &aside, 1);
        }
        put_part(part, at, step, count, columns * size, aside.step);
      }
    }
  }
}
