// f32 convolution, NHWC, 3x3 window without stride, dilation or groups, by Winograd's F(4x4, 3x3): a tile of 4x4 outputs
// takes 36 products of each input and output channel, not 144. A 5x5 or 6x6 window that steps by two pixels of a picture
// of 3 channels is one of 3x3 over squares of 2x2 pixels.
//
//   x        [n, ih, iw, ci]   read                      y  [n, oh, ow, co]  written
//   k        sides of the window: 3, or 5 or 6 of a picture
//   depth    what products go over: ci, or the WINOGRAD_SQUARE values of a square
//   panels   f32_pack_conv_weights's panels of 8 outputs: the biases, and the weights for tiles that are not finite
//   turned   [ceil(co/8)][36][depth][8]  what f32_pack_winograd_weights makes of them
//   scratch  [units][36][WINOGRAD_TILES][depth]  written: one place for each call
//   blocks   of tiles: each has at most WINOGRAD_TILES
//   slices   of the panels of each block; units are `parts` parts of all slices (winograd_pieces.h)
//   The rest is that of conv2d_tile.h.
//   Needs: depth is a multiple of 4; of a picture ci is 3, ih and iw are even; slices <= panels, parts <= blocks * slices; y overlaps nothing that is read.
//
// A transform mixes the 6x6 inputs of a tile: infinite or NaN they would reach outputs whose windows they are not in. A
// tile with such sums is computed from its windows.
// Units: `parts` parts of the blocks' slices.
// Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
#include "winograd_panel.h"

enum { POINTS = WINOGRAD_POINTS, TILES = WINOGRAD_TILES };
_Static_assert(TILES % MR == 0, "a block is whole tiles of the product");
_Static_assert(SIDE * SIDE == POINTS, "a product for each transformed input");

typedef struct {
  Conv c;
  int32_t panel;  // floats of one
  int32_t depth, rows, columns, top, left;  // of what is transformed: its values, its size, and what lies outside
} Job;

// The values i to i + 3 of the square at p: two pixels, and the two below them.
INLINE v4f load_square(const float *p, int32_t row, int32_t i) {
  if (i == 0) return v4f_load(p);
  if (i == 8) return v4f_load(p + row + 2);
  return __builtin_shufflevector(v4f_load(p + 2), v4f_load(p + row), 2, 3, 4, 5);
}

// All channels of the tile whose first input is (iy, ix) of the image, to v[POINTS][TILES][depth].
INLINE void turn_tile(const Job *job, const float *image, int32_t iy, int32_t ix, float *v, const int picture,
                      const int inside) {
  const Conv *c = &job->c;
  const int32_t row = c->iw * c->ci, step = TILES * job->depth, line = picture ? 2 * row : row;
  const int32_t pixel = picture ? 2 * c->ci : c->ci;
  for (int32_t i = 0; i < job->depth; i += 4) {
    v4f half[SIDE][SIDE], to[SIDE];
    NO_UNROLL for (int32_t x = 0; x < SIDE; x++) {
      v4f d[SIDE];
      const float *p = image + iy * line + (ix + x) * pixel;
      UNROLL for (int k = 0; k < SIDE; k++) {
        const int there =
            inside || ((uint32_t)(iy + k) < (uint32_t)job->rows && (uint32_t)(ix + x) < (uint32_t)job->columns);
        d[k] = !there ? v4f_splat(0.0f) : picture ? load_square(p + k * line, row, i) : v4f_load(p + k * line + i);
      }
      turn_inputs(d, to);
      UNROLL for (int k = 0; k < SIDE; k++) half[k][x] = to[k];
    }
    float *end = v + i;
    NO_UNROLL for (int32_t k = 0; k < SIDE; k++) {
      turn_inputs(half[k], to);
      UNROLL for (int x = 0; x < SIDE; x++) v4f_store(end + x * step, to[x]);
      end += SIDE * step;
    }
  }
}

// One row of a tile's outputs, `count` of them: from sums without bias, or from the windows.
static __attribute__((noinline)) void end_row(const Job *job, const float *sums, const Place *place, int32_t panel) {
  const Conv *c = &job->c;
  const float *w = c->w + panel * job->panel;
  const int32_t count = c->ow - place->ox < OUT ? c->ow - place->ox : OUT;
  const int32_t pixel = (place->image * c->oh + place->oy) * c->ow + place->ox;
  v4f acc[MR][NV];
  w = start_tile(acc, w);
  if (sums) {
    UNROLL for (int r = 0; r < OUT; r++) {
      UNROLL for (int j = 0; j < NV; j++) acc[r][j] += v4f_load(sums + r * NR + 4 * j);
    }
  } else {
    Rows rows;
    find_rows(&rows, c, *place, count);
    add_taps(acc, c, &rows, 0, w);
  }
  const Target to = {c->y + pixel * c->y_stride + panel * NR, c->y_stride, pixel, 1};
  store_tile(acc, &c->e, &to, count, panel * NR, c->co - panel * NR);
}

// The outputs of one tile and panel from its sums m[POINTS][TILES][NR]: at once where that is simple, else row by row.
static __attribute__((noinline)) void end_tile(const Job *job, const float *m, Place place, int32_t panel) {
  const Conv *c = &job->c;
  const int simple = place.oy + OUT <= c->oh && place.ox + OUT <= c->ow && ends_simply(&c->e, c->co - panel * NR);
  const float *bias = c->w + panel * job->panel;
  float sums[OUT * OUT * NR];
  float *y = sums;
  int32_t step = NR, pitch = OUT * NR;
  v4f lo = v4f_splat(-INFINITE), hi = v4f_splat(INFINITE), check = v4f_splat(0.0f);
  if (LIKELY(simple)) {
    y = c->y + ((place.image * c->oh + place.oy) * c->ow + place.ox) * c->y_stride + panel * NR;
    step = c->y_stride, pitch = c->ow * step;
    lo = least_of(&c->e), hi = most_of(&c->e);
  }
  NO_UNROLL for (int32_t j = 0; j < NR; j += 4, m += 4) {
    const v4f start = simple ? v4f_load(bias + j) : v4f_splat(0.0f);
    v4f half[OUT][SIDE], to[OUT];
    NO_UNROLL for (int32_t x = 0; x < SIDE; x++) {
      v4f d[SIDE];
      UNROLL for (int k = 0; k < SIDE; k++) d[k] = v4f_load(m + (k * SIDE + x) * TILES * NR);
      turn_back(d, to);
      UNROLL for (int k = 0; k < OUT; k++) half[k][x] = to[k];
    }
    float *row = y + j;
    NO_UNROLL for (int32_t k = 0; k < OUT; k++, row += pitch) {
      float *p = row;
      turn_back(half[k], to);
      check += (to[0] + to[1]) + (to[2] + to[3]);  // infinite or NaN where one of them is
      UNROLL for (int x = 0; x < OUT; x++) {
        v4f_store(p, v4f_clamp(to[x] + start, lo, hi));
        p += step;
      }
    }
  }
  check *= 0.0f;
  const int finite = !v4i_any(check != check);
  if (LIKELY(simple && finite)) {
    if (UNLIKELY(ends_stored(&c->e))) {
      for (int32_t k = 0; k < OUT; k++) activate_rows(y + k * pitch, step, OUT, NR, c->e.act);
    }
    return;
  }
  for (int32_t k = 0; k < OUT && place.oy < c->oh; k++, place.oy++) {
    end_row(job, finite ? sums + k * OUT * NR : 0, &place, panel);
  }
}

// The tiles [first, first + count) of all images; `across` and `down` of each.
static void run_block(const Job *job, const float *turned, float *v, int32_t first, int32_t count, int32_t across,
                      int32_t down, const Piece *piece) {
  const Conv *c = &job->c;
  float m[POINTS * TILES * NR];
  Place places[TILES];
  for (int32_t t = 0; t < count; t++) {
    const int32_t row = (first + t) / across, image = row / down;
    const Place p = {image, (row - image * down) * OUT, (first + t - row * across) * OUT};
    const int32_t iy = p.oy - job->top, ix = p.ox - job->left;
    const float *from = c->x + image * c->ih * c->iw * c->ci;
    float *to = v + t * job->depth;
    places[t] = p;
    const int inside = iy >= 0 && ix >= 0 && iy + SIDE <= job->rows && ix + SIDE <= job->columns;
    if (c->kh > 3 && inside) {
      turn_tile(job, from, iy, ix, to, 1, 1);
    } else if (c->kh > 3) {
      turn_tile(job, from, iy, ix, to, 1, 0);
    } else if (inside) {
      turn_tile(job, from, iy, ix, to, 0, 1);
    } else {
      turn_tile(job, from, iy, ix, to, 0, 0);
    }
  }
  for (int32_t panel = piece->first; panel < piece->behind; panel++) {
    multiply_points(turned + panel * POINTS * job->depth * NR, v, m, POINTS, TILES, count, job->depth);
    for (int32_t t = 0; t < count; t++) end_tile(job, m + t * NR, places[t], panel);
  }
}

void f32_conv2d_nhwc_winograd(const float *restrict x, const float *restrict panels, const float *restrict turned,
                              float *restrict scratch, float *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t ci,
                              int32_t oh, int32_t ow, int32_t co, int32_t k, int32_t depth, int32_t pad_top,
                              int32_t pad_left, int32_t blocks, int32_t slices, int32_t parts, const float *residual,
                              int32_t residual_c, const float *slope, int32_t act, float lo, float hi, int32_t begin,
                              int32_t end) {
  const int32_t s = k > 3 ? 2 : 1;  // squares begin at even pixels
  const Job job = {{x,  panels, y, ci, co, n * oh * ow, ih, iw, ci,      oh,       ow,
                    co, k,      k, s,  s,  1,           1,  pad_top, pad_left, {residual, residual_c, slope, act, lo, hi}},
                   NR + k * k * ci * NR, depth, ih / s, iw / s, (pad_top + s - 1) / s, (pad_left + s - 1) / s};
  const int32_t across = (ow + OUT - 1) / OUT, down = (oh + OUT - 1) / OUT, tiles = n * across * down;
  const int32_t last = first_slice(end, blocks * slices, parts), each = tiles_of_block(tiles, blocks, MR);
  for (int32_t at = first_slice(begin, blocks * slices, parts); at < last;) {
    const Piece piece = piece_at(at, last, slices, (co + NR - 1) / NR);
    const int32_t first = piece.block * each, count = tiles - first < each ? tiles - first : each;
    run_block(&job, turned, scratch + begin * POINTS * TILES * depth, first, count, across, down, &piece);
    at = piece.next;
  }
}
