// Quantised convolution, 3x3 window without stride, dilation or groups, by Winograd's F(4x4, 3x3) in whole numbers: a
// tile of 4x4 outputs takes 36 products of each input and output channel, not 144, and the sums are exact.
//
//   x        [n, ih, iw, x_stride]  bytes; ci channels from x on are read
//   w        panels of q8_pack_winograd_weights   read
//   scratch  [units][36][WINOGRAD_TILES][ci] int16  written: one place for each call
//   y        [n, oh, ow, y_stride]  bytes; co channels from y on are written
//   blocks   ceil(tiles / WINOGRAD_TILES)
//   slices   of the panels of each block; units are `parts` parts of all slices (winograd_pieces.h)
//   The rest is that of q8_conv2d_nhwc.
//   Needs: ci is a multiple of 8; slices <= panels, parts <= blocks * slices; no sum of x times weights, x as uint8,
//   has more than 25 bits and a sign; y overlaps nothing that is read.
// Units: `parts` parts of the blocks' slices.
// Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
#include "q8_tile.h"
#include "q8_winograd.h"
#include "requantize.h"
#include "winograd_pieces.h"

enum { TILES = WINOGRAD_TILES, POINTS = WINOGRAD_POINTS, PANEL_HEAD = Q8_WINOGRAD_HEAD_BYTES };
_Static_assert(TILES % ROWS == 0, "a block is whole tiles of the product");
_Static_assert(SIDE * SIDE == POINTS, "a product for each transformed input");

typedef struct {
  const uint8_t *x, *w;
  uint8_t *y;
  int32_t ih, iw, ci, x_stride, oh, ow, co, y_stride, pad_top, pad_left, flip;
  v8s zero;
  Stored stored;
} Conv;

// Where a tile's first output stands.
typedef struct {
  int32_t image, oy, ox;
} Place;

// All channels of the tile whose first input is (iy, ix) of the image, to v[POINTS][TILES / ROWS][ci / 2][ROWS][2].
INLINE void turn_tile(const Conv *c, const uint8_t *image, int32_t iy, int32_t ix, uint8_t *v, const int inside) {
  const int32_t row = c->iw * c->x_stride, step = 2 * TILES * c->ci;
  for (int32_t i = 0; i < c->ci; i += 8, v += 4 * GROUP * ROWS) {
    v8s half[SIDE][SIDE], to[SIDE];
    NO_UNROLL for (int32_t x = 0; x < SIDE; x++) {
      v8s d[SIDE];
      const uint8_t *p = image + iy * row + (ix + x) * c->x_stride + i;
      UNROLL for (int k = 0; k < SIDE; k++) {
        const int there = inside || ((uint32_t)(iy + k) < (uint32_t)c->ih && (uint32_t)(ix + x) < (uint32_t)c->iw);
        d[k] = there ? load_shorts(p + k * row, c->flip) : c->zero;
      }
      turn_inputs(d, to);
      UNROLL for (int k = 0; k < SIDE; k++) half[k][x] = to[k];
    }
    uint8_t *end = v;
    NO_UNROLL for (int32_t k = 0; k < SIDE; k++) {
      turn_inputs(half[k], to);
      UNROLL for (int x = 0; x < SIDE; x++, end += step) {
        const v4i pairs = (v4i)to[x];
        UNROLL for (int j = 0; j < 4; j++) ((int32_t *)end)[j * ROWS] = pairs[j];
      }
    }
  }
}

// The outputs of one tile and panel from its sums m[POINTS][TILES][COLUMNS].
static __attribute__((noinline)) void end_tile(const Conv *c, const int32_t *m, const Place *place, int32_t column) {
  const uint8_t *panel = c->w + column / COLUMNS * (PANEL_HEAD + 2 * POINTS * COLUMNS * c->ci);
  v4i sums[OUT][OUT][2];
  NO_UNROLL for (int32_t j = 0; j < 2; j++, m += 4) {
    const v4i start = v4i_load(panel + 16 * j);
    v4i half[OUT][SIDE], to[OUT];
    NO_UNROLL for (int32_t x = 0; x < SIDE; x++) {
      v4i d[SIDE];
      UNROLL for (int k = 0; k < SIDE; k++) d[k] = v4i_load(m + (k * SIDE + x) * TILES * COLUMNS);
      turn_back(d, to);
      UNROLL for (int k = 0; k < OUT; k++) half[k][x] = to[k];
    }
    NO_UNROLL for (int32_t k = 0; k < OUT; k++) {
      turn_back(half[k], to);
      UNROLL for (int x = 0; x < OUT; x++) sums[k][x][j] = start + exact_part(to[x]);
    }
  }
  const v4f low = v4f_load(panel + 32), high = v4f_load(panel + 48);
  const int32_t left = c->co - column, wide = c->ow - place->ox < OUT ? c->ow - place->ox : OUT;
  for (int32_t k = 0; k < OUT && place->oy + k < c->oh; k++) {
    uint8_t *y = c->y + ((place->image * c->oh + place->oy + k) * c->ow + place->ox) * c->y_stride + column;
    NO_UNROLL for (int32_t x = 0; x < wide; x++, y += c->y_stride) {
      const v4i *both = sums[k][x];
      const v16u bytes = stored_bytes(requantize(both[0], low, &c->stored), requantize(both[1], high, &c->stored),
                                      &c->stored);
      store_bytes(y, bytes, left < COLUMNS ? left : COLUMNS);
    }
  }
}

// The tiles [first, first + count) of all images; `across` and `down` of each.
static void run_block(const Conv *c, uint8_t *v, int32_t first, int32_t count, int32_t across, int32_t down,
                      const Piece *piece) {
  int32_t m[POINTS * TILES * COLUMNS];
  Place places[TILES];
  const int32_t four = 2 * ROWS * c->ci;  // bytes of the transformed inputs of ROWS tiles, at one point
  for (int32_t t = 0; t < count; t++) {
    const int32_t row = (first + t) / across, image = row / down;
    const Place p = {image, (row - image * down) * OUT, (first + t - row * across) * OUT};
    const int32_t iy = p.oy - c->pad_top, ix = p.ox - c->pad_left;
    const uint8_t *from = c->x + image * c->ih * c->iw * c->x_stride;
    uint8_t *to = v + t / ROWS * four + t % ROWS * GROUP;
    places[t] = p;
    if (SIMD && iy >= 0 && ix >= 0 && iy + SIDE <= c->ih && ix + SIDE <= c->iw) {
      turn_tile(c, from, iy, ix, to, 1);
    } else {
      turn_tile(c, from, iy, ix, to, 0);
    }
  }
  for (int32_t panel = piece->first; panel < piece->behind; panel++) {
    const uint8_t *w = c->w + panel * (PANEL_HEAD + 2 * POINTS * COLUMNS * c->ci) + PANEL_HEAD;
    for (int32_t point = 0; point < POINTS; point++, w += 2 * COLUMNS * c->ci) {
      for (int32_t t = 0; t < count; t += ROWS) {
        Tile tile;
        UNROLL for (int r = 0; r < ROWS; r++) tile.low[r] = tile.high[r] = v4i_splat(0);
        multiply(&tile, v + (point * (TILES / ROWS) + t / ROWS) * four, 0, w, c->ci / 2, ROWS, 1);
        UNROLL for (int r = 0; r < ROWS; r++) {
          int32_t *to = m + (point * TILES + t + r) * COLUMNS;
          v4i_store(to, tile.low[r]);
          v4i_store(to + 4, tile.high[r]);
        }
      }
    }
    for (int32_t t = 0; t < count; t++) end_tile(c, m + t * COLUMNS, &places[t], panel * COLUMNS);
  }
}

void q8_conv2d_nhwc_winograd(const uint8_t *restrict x, const uint8_t *restrict w, uint8_t *restrict scratch,
                             uint8_t *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t ci, int32_t x_stride,
                             int32_t oh, int32_t ow, int32_t co, int32_t y_stride, int32_t pad_top, int32_t pad_left,
                             int32_t blocks, int32_t slices, int32_t parts, int32_t x_zero,
                             int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo, float hi, int32_t begin,
                             int32_t end) {
  const Conv c = {.x = x, .w = w, .y = y, .ih = ih, .iw = iw, .ci = ci, .x_stride = x_stride, .oh = oh, .ow = ow,
                  .co = co, .y_stride = y_stride, .pad_top = pad_top, .pad_left = pad_left, .flip = x_flip,
                  .zero = (v8s){} + (int16_t)x_zero, .stored = stored_as(lo, hi, y_zero, y_flip)};
  const int32_t across = (ow + OUT - 1) / OUT, down = (oh + OUT - 1) / OUT, tiles = n * across * down;
  const int32_t last = first_slice(end, blocks * slices, parts);
  for (int32_t at = first_slice(begin, blocks * slices, parts); at < last;) {
    const Piece piece = piece_at(at, last, slices, (co + COLUMNS - 1) / COLUMNS);
    const int32_t first = piece.block * TILES, count = tiles - first < TILES ? tiles - first : TILES;
    run_block(&c, scratch + 2 * begin * POINTS * TILES * ci, first, count, across, down, &piece);
    at = piece.next;
  }
}
