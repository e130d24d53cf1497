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

// Copies bytes; writes up to 15 more.
INLINE void bring_bytes(const uint8_t *x, uint8_t *to, int32_t count) {
  NO_UNROLL for (int32_t i = 0; i < count; i += 16) v16u_store(to + i, v16u_load(x + i));
}

// The bytes [first, first + count) of the window of one output pixel. Writes up to 15 bytes more.
static __attribute__((noinline)) void bring_pixel(const Source *s, const Place *p, int32_t first, int32_t count,
                                                  uint8_t *to) {
  const int32_t top = p->oy * s->sh - s->pad_top, left = p->ox * s->sw - s->pad_left;
  // Taps that are neighbours in memory are one piece: the window's row, when all of it lies in the image.
  const int32_t whole = s->is_row && left >= 0 && left + s->kw <= s->iw;
  const int32_t piece = whole ? s->kw * s->ci : s->ci, taps = whole ? s->kw : 1;
  int32_t tap = first / piece * taps, offset = first % piece;
  const v16u zero = (v16u){} + (uint8_t)(s->form.zero ^ s->form.flip);
  while (count > 0) {
    const int32_t ky = tap / s->kw, kx = tap - ky * s->kw;
    const int32_t iy = top + ky * s->dh, ix = left + kx * s->dw;
    const int32_t rest = piece - offset, n = rest < count ? rest : count;
    if (iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw) {
      bring_bytes(s->x + ((p->image * s->ih + iy) * s->iw + ix) * s->x_stride + offset, to, n);
    } else {
      NO_UNROLL for (int32_t i = 0; i < n; i += 16) v16u_store(to + i, zero);
    }
    to += n;
    count -= n;
    offset = 0;
    tap += taps;
  }
}

// The windows of `count` pixels of one row of outputs, `stride` bytes apart. Writes up to 15 bytes more.
INLINE void bring_windows(const Source *s, const Place *from, int32_t count, int32_t stride, uint8_t *to) {
  Place p = *from;
  const int32_t piece = s->kw * s->ci, row = s->iw * s->x_stride, step = s->dh * row;
  const int32_t top = p.oy * s->sh - s->pad_top, last = s->iw - s->kw;
  const int32_t inside = s->is_row && top >= 0 && top + (s->kh - 1) * s->dh < s->ih;
  const uint8_t *x = s->x + (p.image * s->ih + top) * row;
  NO_UNROLL for (; count > 0; count--, p.ox++, to += stride) {
    int32_t left = p.ox * s->sw - s->pad_left;
    if (s->kh == 3 && piece <= 16 && inside && left >= 0) {  // pictures: their windows in a loop without tests
      const uint8_t *row_at = x + left * s->x_stride, *next = row_at + step, *after = next + step;
      const int32_t pixels = s->sw * s->x_stride;
      NO_UNROLL for (; count > 0 && left <= last; count--, p.ox++, to += stride, left += s->sw) {
        v16u_store(to, v16u_load(row_at));
        v16u_store(to + piece, v16u_load(next));
        v16u_store(to + 2 * piece, v16u_load(after));
        row_at += pixels;
        next += pixels;
        after += pixels;
      }
      if (count <= 0) return;
    }
    if (UNLIKELY(!inside || left < 0 || left > last)) {
      bring_pixel(s, &p, 0, s->kh * piece, to);
      continue;
    }
    const uint8_t *piece_at = x + left * s->x_stride;
    uint8_t *end = to;
    if (piece <= 16) {
      NO_UNROLL for (int32_t ky = s->kh; ky > 0; ky--, piece_at += step, end += piece) v16u_store(end, v16u_load(piece_at));
    } else {
      NO_UNROLL for (int32_t ky = s->kh; ky > 0; ky--, piece_at += step, end += piece) bring_bytes(piece_at, end, piece);
    }
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

// A tile of pixels that lie `stride` bytes apart, each with `count` steps.
INLINE void bring_interleaved(const uint8_t *x, int32_t stride, int32_t count, const Form *form, uint8_t *to) {
  const int32_t step = 16 / form->size;
  NO_UNROLL for (int32_t i = 0; i < count; i += step, to += 16 * ROWS) {
    const uint8_t *p = x + i, *q = p + stride, *r = q + stride, *s = r + stride;
    store_groups(to, steps_at(p, form), steps_at(q, form), steps_at(r, form), steps_at(s, form));
  }
}

// Where pixels from `first` on are stored, `stride` bytes apart: x itself, where their sums' steps are, else the scratch.
typedef struct {
  const uint8_t *from;
  int32_t first, stride;
} Lines;

INLINE const uint8_t *line_of(const Lines *lines, int32_t pixel) {
  return lines->from + (pixel - lines->first) * lines->stride;
}

// The lines of the tile that begins with `pixel`, of the block [first, last). A tile of two or three pixels reads more
// of them than there are: these are in the scratch.
INLINE Lines lines_of(const Source *s, int32_t first, int32_t last, int32_t pixel, const uint8_t *scratch) {
  const int32_t rest = last - pixel, in_x = s->is_copy && (rest == 1 || rest >= ROWS);
  if (in_x) return (Lines){s->x, 0, s->x_stride};
  const int32_t depth = s->kh * s->kw * s->ci;
  return (Lines){scratch, s->is_copy ? pixel : first, (depth + 15) / 16 * 16};
}

// The pixels [first, last) as tiles, `stride` bytes for a pixel. All are brought before the first is read again.
static __attribute__((noinline)) void fill_block(const Source *s, int32_t first, int32_t last, int32_t stride,
                                                 uint8_t *scratch, uint8_t *to) {
  const int32_t depth = s->kh * s->kw * s->ci, rest = (last - first) % ROWS;
  int32_t pixel = !s->is_copy ? first : rest > 1 ? last - rest : last;
  const Lines brought = {scratch, pixel, (depth + 15) / 16 * 16};
  for (int32_t count; pixel < last; pixel += count) {
    const Place p = place_of(s, pixel);
    count = last - pixel < s->ow - p.ox ? last - pixel : s->ow - p.ox;
    bring_windows(s, &p, count, brought.stride, scratch + (pixel - brought.first) * brought.stride);
  }
  for (pixel = first; pixel < last; pixel += ROWS, to += ROWS * stride) {
    const Lines lines = lines_of(s, first, last, pixel, scratch);
    if (pixel + 1 == last) {
      bring(line_of(&lines, pixel), to, depth, &s->form);
    } else {
      bring_interleaved(line_of(&lines, pixel), lines.stride, depth, &s->form, to);
    }
  }
}

// What the products of a tile's pixels in crossed have too much (multiply_crossed), negative; of a pixel alone, in every lane.
static __attribute__((noinline)) v4i twins_of(const uint8_t *tile, int32_t groups, const int32_t rows) {
  v4i sums = v4i_splat(0);
  for (int32_t g = 0; g < groups; g += 2, tile += 2 * rows * GROUP) {
    if (rows == 1) {
      sums -= v4i_dot_i16((v8s)v4f_load_splat((const float *)tile), (v8s)v4f_load_splat((const float *)(tile + GROUP)));
    } else {
      sums -= v4i_dot_i16(v8s_load(tile), v8s_load(tile + rows * GROUP));
    }
  }
  return sums;
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
