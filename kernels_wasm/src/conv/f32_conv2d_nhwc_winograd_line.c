// f32 convolution, NHWC, 1x3 or 3x1 window without stride, dilation or groups, by Winograd's F(4, 3): a tile of four
// outputs in a line takes 6 products of each input and output channel, not 12.
//
//   x        [n, ih, iw, ci]   read                      y  [n, oh, ow, co]  written
//   panels   f32_pack_conv_weights's panels of 8 outputs: the biases, and the weights for tiles that are not finite
//   turned   [ceil(co/8)][6][ci][8]  what f32_pack_winograd_line_weights makes of them
//   scratch  [units][6][WINOGRAD_LINE_TILES][ci]  written: one place for each call
//   kh       3 for lines down the image, 1 for lines across
//   blocks   of tiles: each has at most WINOGRAD_LINE_TILES
//   slices   of the panels of each block; units are `parts` parts of all slices (winograd_pieces.h)
//   The rest is that of conv2d_tile.h.
//   Needs: ci is a multiple of 4; slices <= panels, parts <= blocks * slices; y overlaps nothing that is read.
//
// A tile with sums that are not finite is computed from its windows, as in f32_conv2d_nhwc_winograd.c.
// Units: `parts` parts of the blocks' slices.
// Source: Winograd, Arithmetic Complexity of Computations, 1980.
#include "winograd_panel.h"

enum { TILES = WINOGRAD_LINE_TILES };
_Static_assert(TILES % MR == 0, "a block is whole tiles of the product");

// All channels of the tile whose first window begins at (iy, ix) of the image, to v[SIDE][TILES][ci].
static __attribute__((noinline)) void turn_tile(const Conv *c, const float *image, int32_t iy, int32_t ix, float *v) {
  const int32_t down = c->kh == 3, step = TILES * c->ci;
  const float *from[SIDE];
  int32_t there[SIDE];
  NO_UNROLL for (int32_t k = 0; k < SIDE; k++) {
    const int32_t y = down ? iy + k : iy, x = down ? ix : ix + k;
    there[k] = (uint32_t)y < (uint32_t)c->ih && (uint32_t)x < (uint32_t)c->iw ? -1 : 0;
    from[k] = there[k] ? image + (y * c->iw + x) * c->ci : image;
  }
  for (int32_t i = 0; i < c->ci; i += 4) {
    v4f d[SIDE], to[SIDE];
    UNROLL for (int k = 0; k < SIDE; k++) d[k] = (v4f)((v4i)v4f_load(from[k] + i) & v4i_splat(there[k]));
    turn_inputs(d, to);
    UNROLL for (int k = 0; k < SIDE; k++) v4f_store(v + k * step + i, to[k]);
  }
}

// The outputs of one tile and panel from its sums m[SIDE][TILES][NR].
static __attribute__((noinline)) void end_tile(const Conv *c, const float *m, Place place, int32_t panel) {
  const float *panel_weights = c->w + panel * (NR + 3 * c->ci * NR);
  const int32_t down = c->kh == 3, rest = down ? c->oh - place.oy : c->ow - place.ox, pixel_step = down ? c->ow : 1;
  const int32_t count = rest < OUT ? rest : OUT, pixel = (place.image * c->oh + place.oy) * c->ow + place.ox;
  v4f acc[MR][NV], check = v4f_splat(0.0f);
  const float *w = start_tile(acc, panel_weights);
  UNROLL for (int j = 0; j < 2; j++) {
    v4f d[SIDE], to[OUT];
    UNROLL for (int k = 0; k < SIDE; k++) d[k] = v4f_load(m + k * TILES * NR + 4 * j);
    turn_back(d, to);
    UNROLL for (int k = 0; k < OUT; k++) {
      acc[k][j] += to[k];
      check += to[k] * 0.0f;
    }
  }
  Target to = {c->y + pixel * c->y_stride + panel * NR, pixel_step * c->y_stride, pixel, pixel_step};
  if (LIKELY(!v4i_any(check != check))) {
    store_tile(acc, &c->e, &to, count, panel * NR, c->co - panel * NR);
    return;
  }
  for (int32_t k = 0; k < count; k++, to.y += to.y_step, to.pixel += pixel_step) {
    Rows rows;
    start_tile(acc, panel_weights);
    find_rows(&rows, c, place, 1);
    add_taps(acc, c, &rows, 0, w);
    store_tile(acc, &c->e, &to, 1, panel * NR, c->co - panel * NR);
    if (down) place.oy++;
    else place.ox++;
  }
}

// The tiles [first, first + count) of all images; `across` and `rows` of each.
static void run_block(const Conv *c, const float *turned, float *v, int32_t first, int32_t count, int32_t across,
                      int32_t rows, const Piece *piece) {
  float m[SIDE * TILES * NR];
  Place places[TILES];
  const int32_t down = c->kh == 3;
  for (int32_t t = 0; t < count; t++) {
    const int32_t row = (first + t) / across, image = row / rows;
    const int32_t oy = row - image * rows, ox = first + t - row * across;
    places[t] = (Place){image, down ? oy * OUT : oy, down ? ox : ox * OUT};
    turn_tile(c, c->x + image * c->ih * c->iw * c->ci, places[t].oy - c->pad_top, places[t].ox - c->pad_left,
              v + t * c->ci);
  }
  for (int32_t panel = piece->first; panel < piece->behind; panel++) {
    multiply_points(turned + panel * SIDE * c->ci * NR, v, m, SIDE, TILES, count, c->ci);
    for (int32_t t = 0; t < count; t++) end_tile(c, m + t * NR, places[t], panel);
  }
}

void f32_conv2d_nhwc_winograd_line(const float *restrict x, const float *restrict panels, const float *restrict turned,
                                   float *restrict scratch, float *restrict y, int32_t n, int32_t ih, int32_t iw,
                                   int32_t ci, int32_t oh, int32_t ow, int32_t co, int32_t kh, int32_t pad_top,
                                   int32_t pad_left, int32_t blocks, int32_t slices, int32_t parts,
                                   const float *residual, int32_t residual_c, const float *slope, int32_t act, float lo,
                                   float hi, int32_t begin, int32_t end) {
  const int32_t down = kh == 3, kw = down ? 1 : 3;
  const Epilogue e = {residual, residual_c, slope, act, lo, hi};
  const Conv c = {x,  panels, y,  ci, co, n * oh * ow, ih, iw, ci,      oh,       ow,
                  co, kh,     kw, 1,  1,  1,           1,  pad_top, pad_left, e};
  const int32_t across = down ? ow : (ow + OUT - 1) / OUT, rows = down ? (oh + OUT - 1) / OUT : oh;
  const int32_t tiles = n * across * rows, last = first_slice(end, blocks * slices, parts);
  const int32_t each = tiles_of_block(tiles, blocks, MR);
  for (int32_t at = first_slice(begin, blocks * slices, parts); at < last;) {
    const Piece piece = piece_at(at, last, slices, (co + NR - 1) / NR);
    const int32_t first = piece.block * each, count = tiles - first < each ? tiles - first : each;
    run_block(&c, turned, scratch + begin * SIDE * TILES * ci, first, count, across, rows, &piece);
    at = piece.next;
  }
}
