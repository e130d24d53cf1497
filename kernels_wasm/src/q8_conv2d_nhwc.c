// Quantised dense convolution, NHWC, any window; a matrix product is one with a 1x1 window.
//
//   x  [n, ih, iw, x_stride]  bytes; ci channels from x on are read, up to 7 bytes past the end
//   w  panels of q8_pack_weights      y  [n, oh, ow, y_stride]  bytes; co channels from y on are written
//   x_zero                 the stored byte of zero in x's uint8 form: what padding holds
//   x_flip, y_flip         0x80 for int8, 0 for uint8
//   lo, hi, y_zero         as in requantize.h
//
// Pixels are widened to int16 in blocks that stay in the first cache; a tile is 4 pixels by 8 outputs.
// Needs: x and y do not overlap. Split by tiles of 4 output pixels.
#include "requantize.h"

enum { ROWS = 4, COLUMNS = 8, HEAD = 32, BLOCK = 8192 };  // BLOCK: int16 units on the stack

typedef struct {
  const uint8_t *x;
  int32_t ih, iw, ci, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
  int32_t x_zero, x_flip;
} Source;

static void widen(const uint8_t *x, int16_t *to, int32_t count, int32_t flip) {
  NO_UNROLL for (int32_t i = 0; i < count; i += 8) v8s_store(to + i, load_shorts(x + i, flip));
}

// Steps [first, first + count) of the sum of one output pixel, as shorts. Writes up to 7 units more.
static void widen_pixel(const Source *s, int32_t pixel, int32_t first, int32_t count, int16_t *to) {
  const int32_t ox = pixel % s->ow, oy = pixel / s->ow % s->oh, image = pixel / s->ow / s->oh;
  const int32_t top = oy * s->sh - s->pad_top, left = ox * s->sw - s->pad_left;
  // Taps that are neighbours in memory are one piece: the window's row, when all of it lies in the image.
  const int32_t whole = s->dw == 1 && s->x_stride == s->ci && left >= 0 && left + s->kw <= s->iw;
  const int32_t piece = whole ? s->kw * s->ci : s->ci, taps = whole ? s->kw : 1;
  int32_t tap = first / piece * taps, offset = first % piece;
  const v8s zero = (v8s){} + (int16_t)s->x_zero;
  while (count > 0) {
    const int32_t ky = tap / s->kw, kx = tap - ky * s->kw;
    const int32_t iy = top + ky * s->dh, ix = left + kx * s->dw;
    const int32_t rest = piece - offset, n = rest < count ? rest : count;
    if (iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw) {
      widen(s->x + ((image * s->ih + iy) * s->iw + ix) * s->x_stride + offset, to, n, s->x_flip);
    } else {
      NO_UNROLL for (int32_t i = 0; i < n; i += 8) v8s_store(to + i, zero);
    }
    to += n;
    count -= n;
    offset = 0;
    tap += taps;
  }
}

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

// t += a[rows][pairs * 2] * b[pairs][8][2]
INLINE void multiply(Tile *t, const int16_t *a, int32_t a_stride, const int16_t *b, int32_t pairs, const int rows) {
  NO_UNROLL for (int32_t p = 0; p < pairs; p++, a += 2, b += 2 * COLUMNS) {
    const v8s b_low = v8s_load(b), b_high = v8s_load(b + COLUMNS);
    UNROLL for (int r = 0; r < rows; r++) {
      const v8s pair = pair_splat(a + r * a_stride);
      t->low[r] += v4i_dot_i16(pair, b_low);
      t->high[r] += v4i_dot_i16(pair, b_high);
    }
  }
}

typedef struct {
  uint8_t *y;
  int32_t y_stride, columns;
  Stored stored;
} Target;

INLINE void finish(const Tile *t, const int16_t *panel, const Target *to, const int rows, int32_t count) {
  const v4f scale_low = v4f_load(panel + 16), scale_high = v4f_load(panel + 24);
  UNROLL for (int r = 0; r < rows; r++) {
    const v4i low = requantize(t->low[r], scale_low, &to->stored);
    const v4i high = requantize(t->high[r], scale_high, &to->stored);
    if (r < count) store_bytes(to->y + r * to->y_stride, stored_bytes(low, high, &to->stored), to->columns);
  }
}

// A tile of up to `rows` pixels, of which `count` exist; the others are computed from stale shorts and dropped.
INLINE void whole_tile(const int16_t *a, int32_t a_stride, const int16_t *panel, int32_t pairs, const Target *to,
                       const int rows, int32_t count) {
  Tile t;
  start(&t, panel, rows);
  multiply(&t, a, a_stride, panel + HEAD, pairs, rows);
  finish(&t, panel, to, rows, count);
}

// A tile whose sums are too long for the block: `part` of them at a time.
static __attribute__((noinline)) void long_tile(const Source *s, int16_t *block, int32_t pixel, int32_t depth, int32_t part,
                                                const int16_t *panel, const Target *to, int32_t count) {
  Tile t;
  start(&t, panel, ROWS);
  for (int32_t k = 0; k < depth; k += part) {
    const int32_t n = depth - k < part ? depth - k : part;
    for (int32_t r = 0; r < count; r++) widen_pixel(s, pixel + r, k, n, block + r * part);
    multiply(&t, block, part, panel + HEAD + k * COLUMNS, (n + 1) / 2, ROWS);
  }
  finish(&t, panel, to, ROWS, count);
}

void q8_conv2d_nhwc(const uint8_t *restrict x, const int16_t *restrict w, uint8_t *restrict y, int32_t n, int32_t ih,
                    int32_t iw, int32_t ci, int32_t x_stride, int32_t oh, int32_t ow, int32_t co, int32_t y_stride,
                    int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,
                    int32_t pad_left, int32_t x_zero, int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo, float hi,
                    int32_t begin, int32_t end) {
  const Source source = {x, ih, iw, ci, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left, x_zero, x_flip};
  const int32_t depth = kh * kw * ci, pairs = (depth + 1) / 2, pixels = n * oh * ow;
  const int32_t most = BLOCK / ROWS, is_long = depth > most;
  const int32_t stride = (depth + 7) / 8 * 8, block_tiles = is_long ? 1 : BLOCK / (ROWS * stride);
  const int32_t panel_size = HEAD + pairs * 2 * COLUMNS;
  int16_t block[BLOCK + 8];
  Target to = {y, y_stride, COLUMNS, {lo, hi, y_zero, y_flip}};

  for (int32_t tile = begin, tiles; tile < end; tile += tiles) {
    tiles = end - tile < block_tiles ? end - tile : block_tiles;
    const int32_t first = tile * ROWS, last = (tile + tiles) * ROWS < pixels ? (tile + tiles) * ROWS : pixels;
    for (int32_t p = first; p < last && !is_long; p++) widen_pixel(&source, p, 0, depth, block + (p - first) * stride);
    for (int32_t column = 0; column < co; column += COLUMNS) {
      const int16_t *panel = w + column / COLUMNS * panel_size;
      to.columns = co - column < COLUMNS ? co - column : COLUMNS;
      for (int32_t p = first; p < last; p += ROWS) {
        const int16_t *a = block + (p - first) * stride;
        to.y = y + p * y_stride + column;
        if (is_long) {
          long_tile(&source, block, p, depth, most, panel, &to, last - p);
        } else if (last - p == 1) {
          whole_tile(a, stride, panel, pairs, &to, 1, 1);
        } else {
          whole_tile(a, stride, panel, pairs, &to, ROWS, last - p);
        }
      }
    }
  }
}
