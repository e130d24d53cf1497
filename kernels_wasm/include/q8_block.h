// What a quantised dense convolution multiplies: the windows of output pixels, widened to int16, four pixels a tile.
//
// The steps of the sums lie in pairs, a pair of each of a tile's pixels side by side: block[tile][pair][4][2]. A tile
// of one pixel holds nothing else: [pair][2]; the missing pixels of a tile of two or three are what the scratch held.
#pragma once

#include "requantize.h"

enum { ROWS = Q8_ROWS };  // pixels of a tile

typedef struct {
  const uint8_t *x;
  int32_t ih, iw, ci, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
  int32_t x_zero, x_flip;  // as q8_conv2d_nhwc has them
  int32_t is_row;   // the taps of a window's row lie together
  int32_t is_copy;  // the sums' steps are x itself: window 1x1, stride 1
} Source;

INLINE void widen(const uint8_t *x, int16_t *to, int32_t count, int32_t flip) {
  NO_UNROLL for (int32_t i = 0; i < count; i += 8) v8s_store(to + i, load_shorts(x + i, flip));
}

// Where an output pixel stands.
typedef struct {
  int32_t image, oy, ox;
} Place;

static Place place_of(const Source *s, int32_t pixel) {
  const int32_t row = pixel / s->ow;
  return (Place){row / s->oh, row % s->oh, pixel % s->ow};
}

INLINE void next_place(const Source *s, Place *p) {
  if (LIKELY(++p->ox < s->ow)) return;
  p->ox = 0;
  if (++p->oy < s->oh) return;
  p->oy = 0;
  p->image++;
}

// Steps [first, first + count) of the sum of one output pixel, as shorts. Writes up to 7 units more.
static __attribute__((noinline)) void widen_pixel(const Source *s, const Place *p, int32_t first, int32_t count,
                                                  int16_t *to) {
  const int32_t top = p->oy * s->sh - s->pad_top, left = p->ox * s->sw - s->pad_left;
  // Taps that are neighbours in memory are one piece: the window's row, when all of it lies in the image.
  const int32_t whole = s->is_row && left >= 0 && left + s->kw <= s->iw;
  const int32_t piece = whole ? s->kw * s->ci : s->ci, taps = whole ? s->kw : 1;
  int32_t tap = first / piece * taps, offset = first % piece;
  const v8s zero = (v8s){} + (int16_t)s->x_zero;
  while (count > 0) {
    const int32_t ky = tap / s->kw, kx = tap - ky * s->kw;
    const int32_t iy = top + ky * s->dh, ix = left + kx * s->dw;
    const int32_t rest = piece - offset, n = rest < count ? rest : count;
    if (iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw) {
      widen(s->x + ((p->image * s->ih + iy) * s->iw + ix) * s->x_stride + offset, to, n, s->x_flip);
    } else {
      NO_UNROLL for (int32_t i = 0; i < n; i += 8) v8s_store(to + i, zero);
    }
    to += n;
    count -= n;
    offset = 0;
    tap += taps;
  }
}

// All steps of the sum of one output pixel. Writes up to 7 units more.
INLINE void widen_window(const Source *s, const Place *p, int16_t *to) {
  const int32_t piece = s->kw * s->ci, row = s->iw * s->x_stride;
  const int32_t top = p->oy * s->sh - s->pad_top, left = p->ox * s->sw - s->pad_left;
  const int32_t inside = top >= 0 && top + (s->kh - 1) * s->dh < s->ih && left >= 0 && left + s->kw <= s->iw;
  if (UNLIKELY(!inside || !s->is_row)) {
    widen_pixel(s, p, 0, s->kh * piece, to);
    return;
  }
  const uint8_t *from = s->x + (p->image * s->ih + top) * row + left * s->x_stride;
  NO_UNROLL for (int32_t ky = 0; ky < s->kh; ky++, from += s->dh * row, to += piece) {
    widen(from, to, piece, s->x_flip);
  }
}

// Stores eight steps of each of four pixels as four pairs of each.
INLINE void store_pairs(int16_t *to, v8s a, v8s b, v8s c, v8s d) {
  const v4i p = (v4i)a, q = (v4i)b, r = (v4i)c, s = (v4i)d;
  const v4i pq_low = __builtin_shufflevector(p, q, 0, 4, 1, 5), pq_high = __builtin_shufflevector(p, q, 2, 6, 3, 7);
  const v4i rs_low = __builtin_shufflevector(r, s, 0, 4, 1, 5), rs_high = __builtin_shufflevector(r, s, 2, 6, 3, 7);
  v4i_store(to, __builtin_shufflevector(pq_low, rs_low, 0, 1, 4, 5));
  v4i_store(to + 8, __builtin_shufflevector(pq_low, rs_low, 2, 3, 6, 7));
  v4i_store(to + 16, __builtin_shufflevector(pq_high, rs_high, 0, 1, 4, 5));
  v4i_store(to + 24, __builtin_shufflevector(pq_high, rs_high, 2, 3, 6, 7));
}

// A tile of pixels that lie `stride` shorts apart.
INLINE void interleave(const int16_t *a, int32_t stride, int32_t count, int16_t *to) {
  NO_UNROLL for (int32_t i = 0; i < count; i += 8, to += 8 * ROWS) {
    const int16_t *p = a + i, *q = p + stride, *r = q + stride, *s = r + stride;
    store_pairs(to, v8s_load(p), v8s_load(q), v8s_load(r), v8s_load(s));
  }
}

// A tile of pixels that lie in x as they are needed.
INLINE void widen_interleaved(const uint8_t *x, int32_t stride, int32_t count, int32_t flip, int16_t *to) {
  NO_UNROLL for (int32_t i = 0; i < count; i += 8, to += 8 * ROWS) {
    const uint8_t *p = x + i, *q = p + stride, *r = q + stride, *s = r + stride;
    store_pairs(to, load_shorts(p, flip), load_shorts(q, flip), load_shorts(r, flip), load_shorts(s, flip));
  }
}

// The pixels [first, last) as tiles, `stride` shorts for a pixel. All are widened before the first is read again.
static __attribute__((noinline)) void fill_block(const Source *s, int32_t first, int32_t last, int32_t stride,
                                                 int16_t *scratch, int16_t *to) {
  const int32_t depth = s->kh * s->kw * s->ci, whole = last - (last - first) % ROWS, rest = last - whole;
  int32_t from = first;
  if (s->is_copy) {
    for (; from < whole; from += ROWS, to += ROWS * stride) {
      widen_interleaved(s->x + from * s->x_stride, s->x_stride, depth, s->x_flip, to);
    }
  }
  Place p = place_of(s, from);
  for (int32_t pixel = from; pixel < last; pixel++, next_place(s, &p)) {
    const int32_t is_alone = rest == 1 && pixel == whole;
    widen_window(s, &p, (is_alone ? to : scratch) + (pixel - from) * stride);
  }
  const int32_t end = rest > 1 ? last : whole;
  for (int32_t pixel = from; pixel < end; pixel += ROWS, scratch += ROWS * stride, to += ROWS * stride) {
    interleave(scratch, stride, depth, to);
  }
}
