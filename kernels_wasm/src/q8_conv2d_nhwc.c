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
  int32_t tap = first / s->ci, channel = first - tap * s->ci;
  const v8s zero = (v8s){} + (int16_t)s->x_zero;
  while (count > 0) {
    const int32_t ky = tap / s->kw, kx = tap - ky * s->kw;
    const int32_t iy = oy * s->sh + ky * s->dh - s->pad_top, ix = ox * s->sw + kx * s->dw - s->pad_left;
    const int32_t left = s->ci - channel, n = left < count ? left : count;
    if (iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw) {
      widen(s->x + ((image * s->ih + iy) * s->iw + ix) * s->x_stride + channel, to, n, s->x_flip);
    } else {
      NO_UNROLL for (int32_t i = 0; i < n; i += 8) v8s_store(to + i, zero);
    }
    to += n;
    count -= n;
    channel = 0;
    tap++;
  }
}

INLINE v8s pair_splat(const int16_t *a) { return (v8s)v4f_load_splat((const float *)a); }

// sums[rows][8] += a[rows][pairs * 2] * b[pairs][8][2]
INLINE void multiply(const int16_t *a, int32_t a_stride, const int16_t *b, int32_t pairs, int32_t *sums, const int rows) {
  v4i low[ROWS], high[ROWS];
  UNROLL for (int r = 0; r < rows; r++) {
    low[r] = v4i_load(sums + r * COLUMNS);
    high[r] = v4i_load(sums + r * COLUMNS + 4);
  }
  NO_UNROLL for (int32_t p = 0; p < pairs; p++, a += 2, b += 2 * COLUMNS) {
    const v8s b_low = v8s_load(b), b_high = v8s_load(b + COLUMNS);
    UNROLL for (int r = 0; r < rows; r++) {
      const v8s pair = pair_splat(a + r * a_stride);
      low[r] += v4i_dot_i16(pair, b_low);
      high[r] += v4i_dot_i16(pair, b_high);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) {
    v4i_store(sums + r * COLUMNS, low[r]);
    v4i_store(sums + r * COLUMNS + 4, high[r]);
  }
}

static void multiply_tile(const int16_t *a, int32_t a_stride, const int16_t *b, int32_t pairs, int32_t *sums, int32_t rows) {
  if (rows == 1) {
    multiply(a, a_stride, b, pairs, sums, 1);
  } else {
    multiply(a, a_stride, b, pairs, sums, ROWS);  // rows past the last pixel are computed from stale shorts and dropped
  }
}

static void start_tile(const int16_t *panel, int32_t *sums) {
  const v4i low = v4i_load(panel), high = v4i_load(panel + 8);
  UNROLL for (int r = 0; r < ROWS; r++) {
    v4i_store(sums + r * COLUMNS, low);
    v4i_store(sums + r * COLUMNS + 4, high);
  }
}

static void store_tile(const int16_t *panel, const int32_t *sums, uint8_t *y, int32_t y_stride, int32_t rows,
                       int32_t columns, const Stored *stored) {
  const v4f scale_low = v4f_load(panel + 16), scale_high = v4f_load(panel + 24);
  for (int32_t r = 0; r < rows; r++, sums += COLUMNS, y += y_stride) {
    const v4i low = requantize(v4i_load(sums), scale_low, stored);
    const v4i high = requantize(v4i_load(sums + 4), scale_high, stored);
    store_bytes(y, stored_bytes(low, high, stored), columns);
  }
}

void q8_conv2d_nhwc(const uint8_t *restrict x, const int16_t *restrict w, uint8_t *restrict y, int32_t n, int32_t ih,
                    int32_t iw, int32_t ci, int32_t x_stride, int32_t oh, int32_t ow, int32_t co, int32_t y_stride,
                    int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,
                    int32_t pad_left, int32_t x_zero, int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo, float hi,
                    int32_t begin, int32_t end) {
  const Source source = {x, ih, iw, ci, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left, x_zero, x_flip};
  const Stored stored = {lo, hi, y_zero, y_flip};
  const int32_t depth = kh * kw * ci, pixels = n * oh * ow;
  // A sum that is too long for the block is taken in parts.
  const int32_t most = BLOCK / ROWS, part = depth <= most ? depth : most;
  const int32_t stride = (part + 7) / 8 * 8, block_tiles = BLOCK / (ROWS * stride);
  const int32_t panel_size = HEAD + (depth + 1) / 2 * 2 * COLUMNS;
  int16_t block[BLOCK + 8];
  int32_t sums[ROWS * COLUMNS];

  for (int32_t tile = begin, tiles; tile < end; tile += tiles) {
    tiles = end - tile < block_tiles ? end - tile : block_tiles;
    const int32_t first = tile * ROWS, last = (tile + tiles) * ROWS < pixels ? (tile + tiles) * ROWS : pixels;
    if (part == depth) {
      for (int32_t p = first; p < last; p++) widen_pixel(&source, p, 0, depth, block + (p - first) * stride);
    }
    for (int32_t column = 0; column < co; column += COLUMNS) {
      const int16_t *panel = w + column / COLUMNS * panel_size;
      const int32_t columns = co - column < COLUMNS ? co - column : COLUMNS;
      for (int32_t p = first; p < last; p += ROWS) {
        const int32_t rows = last - p < ROWS ? last - p : ROWS;
        start_tile(panel, sums);
        if (part == depth) {
          multiply_tile(block + (p - first) * stride, stride, panel + HEAD, (depth + 1) / 2, sums, rows);
        } else {
          for (int32_t k = 0; k < depth; k += part) {
            const int32_t count = depth - k < part ? depth - k : part;
            for (int32_t r = 0; r < rows; r++) widen_pixel(&source, p + r, k, count, block + r * stride);
            multiply_tile(block, stride, panel + HEAD + k * COLUMNS, (count + 1) / 2, sums, rows);
          }
        }
        store_tile(panel, sums, y + p * y_stride + column, y_stride, rows, columns, &stored);
      }
    }
  }
}
