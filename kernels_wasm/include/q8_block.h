// What a quantised dense convolution multiplies: the windows of output pixels, four pixels a tile.
//
// A group is what one dot product takes of a pixel, four bytes: four steps of the sum, or two steps widened to int16
// (q8_form.h). The groups of a tile's pixels lie side by side: block[tile][group][4]. A tile of one pixel
// holds nothing else; the missing pixels of a tile of two or three are what the scratch held.
#pragma once

#include "q8_tile.h"
#include "requantize.h"

typedef struct {
  const uint8_t *x;
  int32_t ih, iw, ci, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
  Form form;
  int32_t is_row;   // the taps of a window's row lie together
  int32_t is_copy;  // the sums' steps are x itself: window 1x1, stride 1
} Source;

// Sixteen bytes of the form, of 16 or 8 steps.
INLINE v16u steps_at(const uint8_t *x, const Form *form) {
  return IS_WIDE(form) ? (v16u)load_shorts(x, form->flip) : v16u_load(x) ^ (uint8_t)form->flip;
}

// `count` steps; writes up to 15 bytes more.
INLINE void bring(const uint8_t *x, uint8_t *to, int32_t count, const Form *form) {
  const int32_t step = 16 / form->size;
  NO_UNROLL for (int32_t i = 0; i < count; i += step, to += 16) v16u_store(to, steps_at(x + i, form));
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

// Steps [first, first + count) of the sum of one output pixel. Writes up to 15 bytes more.
static __attribute__((noinline)) void bring_pixel(const Source *s, const Place *p, int32_t first, int32_t count,
                                                  uint8_t *to) {
  const int32_t top = p->oy * s->sh - s->pad_top, left = p->ox * s->sw - s->pad_left, size = s->form.size;
  // Taps that are neighbours in memory are one piece: the window's row, when all of it lies in the image.
  const int32_t whole = s->is_row && left >= 0 && left + s->kw <= s->iw;
  const int32_t piece = whole ? s->kw * s->ci : s->ci, taps = whole ? s->kw : 1;
  int32_t tap = first / piece * taps, offset = first % piece;
  const v16u zero = size == 2 ? (v16u)((v8s){} + (int16_t)s->form.zero) : (v16u){} + (uint8_t)s->form.zero;
  while (count > 0) {
    const int32_t ky = tap / s->kw, kx = tap - ky * s->kw;
    const int32_t iy = top + ky * s->dh, ix = left + kx * s->dw;
    const int32_t rest = piece - offset, n = rest < count ? rest : count;
    if (iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw) {
      bring(s->x + ((p->image * s->ih + iy) * s->iw + ix) * s->x_stride + offset, to, n, &s->form);
    } else {
      NO_UNROLL for (int32_t i = 0; i < n * size; i += 16) v16u_store(to + i, zero);
    }
    to += n * size;
    count -= n;
    offset = 0;
    tap += taps;
  }
}

// All steps of the sum of one output pixel. Writes up to 15 bytes more.
INLINE void bring_window(const Source *s, const Place *p, uint8_t *to) {
  const int32_t piece = s->kw * s->ci, row = s->iw * s->x_stride;
  const int32_t top = p->oy * s->sh - s->pad_top, left = p->ox * s->sw - s->pad_left;
  const int32_t inside = top >= 0 && top + (s->kh - 1) * s->dh < s->ih && left >= 0 && left + s->kw <= s->iw;
  if (UNLIKELY(!inside || !s->is_row)) {
    bring_pixel(s, p, 0, s->kh * piece, to);
    return;
  }
  const uint8_t *from = s->x + (p->image * s->ih + top) * row + left * s->x_stride;
  NO_UNROLL for (int32_t ky = 0; ky < s->kh; ky++, from += s->dh * row, to += piece * s->form.size) {
    bring(from, to, piece, &s->form);
  }
}

// Stores four groups of each of four pixels.
INLINE void store_groups(uint8_t *to, v16u a, v16u b, v16u c, v16u d) {
  const v4i p = (v4i)a, q = (v4i)b, r = (v4i)c, s = (v4i)d;
  const v4i pq_low = __builtin_shufflevector(p, q, 0, 4, 1, 5), pq_high = __builtin_shufflevector(p, q, 2, 6, 3, 7);
  const v4i rs_low = __builtin_shufflevector(r, s, 0, 4, 1, 5), rs_high = __builtin_shufflevector(r, s, 2, 6, 3, 7);
  v4i_store(to, __builtin_shufflevector(pq_low, rs_low, 0, 1, 4, 5));
  v4i_store(to + 16, __builtin_shufflevector(pq_low, rs_low, 2, 3, 6, 7));
  v4i_store(to + 32, __builtin_shufflevector(pq_high, rs_high, 0, 1, 4, 5));
  v4i_store(to + 48, __builtin_shufflevector(pq_high, rs_high, 2, 3, 6, 7));
}

// A tile of pixels that lie `stride` bytes apart, each with so many bytes.
INLINE void interleave(const uint8_t *a, int32_t stride, int32_t bytes, uint8_t *to) {
  NO_UNROLL for (int32_t i = 0; i < bytes; i += 16, to += 16 * ROWS) {
    const uint8_t *p = a + i, *q = p + stride, *r = q + stride, *s = r + stride;
    store_groups(to, v16u_load(p), v16u_load(q), v16u_load(r), v16u_load(s));
  }
}

// A tile of pixels that lie in x as they are needed.
INLINE void bring_interleaved(const uint8_t *x, int32_t stride, int32_t count, const Form *form, uint8_t *to) {
  const int32_t step = 16 / form->size;
  NO_UNROLL for (int32_t i = 0; i < count; i += step, to += 16 * ROWS) {
    const uint8_t *p = x + i, *q = p + stride, *r = q + stride, *s = r + stride;
    store_groups(to, steps_at(p, form), steps_at(q, form), steps_at(r, form), steps_at(s, form));
  }
}

// The pixels [first, last) as tiles, `stride` bytes for a pixel. All are brought before the first is read again.
static __attribute__((noinline)) void fill_block(const Source *s, int32_t first, int32_t last, int32_t stride,
                                                 uint8_t *scratch, uint8_t *to) {
  const int32_t depth = s->kh * s->kw * s->ci, whole = last - (last - first) % ROWS, rest = last - whole;
  int32_t from = first;
  if (s->is_copy) {
    for (; from < whole; from += ROWS, to += ROWS * stride) {
      bring_interleaved(s->x + from * s->x_stride, s->x_stride, depth, &s->form, to);
    }
  }
  Place p = place_of(s, from);
  for (int32_t pixel = from; pixel < last; pixel++, next_place(s, &p)) {
    const int32_t is_alone = rest == 1 && pixel == whole;
    bring_window(s, &p, (is_alone ? to : scratch) + (pixel - from) * stride);
  }
  const int32_t end = rest > 1 ? last : whole;
  for (int32_t pixel = from; pixel < end; pixel += ROWS, scratch += ROWS * stride, to += ROWS * stride) {
    interleave(scratch, stride, depth * s->form.size, to);
  }
}

// The sums of the bytes of a tile's pixels; of a pixel alone, in every lane.
static __attribute__((noinline)) v4i sums_of(const uint8_t *tile, int32_t depth, const int32_t rows) {
  v4i sums = v4i_splat(0);
  for (int32_t k = 0; k < depth; k += GROUP, tile += rows * GROUP) {
    const int32_t past = k + GROUP - depth;
    const v16s ones = (v16s)v4i_splat(past > 0 ? 0x01010101 >> 8 * past : 0x01010101);
    const v16u x = rows == 1 ? (v16u)v4f_load_splat((const float *)tile) : v16u_load(tile);
    sums = v4i_dot4_i8(ones, x, sums);
  }
  return sums;
}
