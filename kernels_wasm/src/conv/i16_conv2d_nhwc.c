// Convolution of int16 data with int8 weights: 64-bit sums, scaled by a multiplier of 15 bits, as TFLite's are.
//
//   x       [n, ih, iw, ci] int16            read
//   w       [co, kh, kw, ci/groups] int8; depthwise: [1, kh, kw, co], read with steps `w_out` and `w_in`   read
//   bias    [co] int64, or none; int32 where `narrow`   read
//   scales  [co] int32: multipliers          read
//   shifts  [co] int32: right shifts; where `narrow`, exponents of two of multipliers that stand for fractions   read
//   y       [n, oh, ow, co] int16            written
//   transposed  1: a transposed convolution of one group, whose strides and pads are those of its input    else 0
// Needs: y overlaps nothing.
//
// Units: pixels of y, n * oh * ow. Zero points of x and w are 0, the padding is too; y = (sum * scale + half) >> shift,
// clamped to lo..hi. `narrow`: beside a bias of int32 sums wrap around at 32 bits and are rounded twice, halves up; where
// it is 2, away from zero.
// Source: tensorflow v2.18.0, lite/kernels/internal/common.cc, MultiplyByQuantizedMultiplier of int64 and of int32
#include "dots.h"

typedef struct {
  const int16_t *x;
  const int8_t *w;
  const int64_t *bias;
  const int32_t *scales, *shifts;
  int16_t *y;
  int32_t ih, iw, ci, kh, kw, oh, ow, co, in_group, out_group, w_out, w_tap, stride_h, stride_w, dilation_h, dilation_w,
      pad_top, pad_left, transposed, narrow, lo, hi;
} Short;

// Where a tap reads; -1 where it reads nothing.
INLINE int32_t source(int32_t at, int32_t tap, int32_t stride, int32_t pad, int32_t transposed) {
  if (!transposed) return at * stride + tap - pad;
  const int32_t reached = at + pad - tap;
  return reached < 0 || reached % stride ? -1 : reached / stride;
}

// A sum of 32 bits times a multiplier of 31, a fraction, and a power of two.
static int64_t scaled_narrow(const Short *c, int64_t sum, int32_t o) {
  const int32_t exponent = c->shifts[o], right = exponent < 0 ? -exponent : 0;
  const int32_t whole = (int32_t)((uint32_t)(sum + (c->bias ? ((const int32_t *)c->bias)[o] : 0)) << (exponent + right));
  const int64_t high = ((int64_t)whole * c->scales[o] + (1 << 30)) >> 31;
  const int64_t half = ((int64_t)1 << right) >> 1;
  return (high + half - (c->narrow == 2 && high < 0 && half)) >> right;
}

// The stored result of a sum for output `o`.
INLINE int16_t stored_short(const Short *c, int64_t sum, int32_t o) {
  if (c->narrow) {
    const int64_t y = scaled_narrow(c, sum, o);
    return (int16_t)(y < c->lo ? c->lo : y > c->hi ? c->hi : y);
  }
  const int64_t half = (int64_t)1 << (c->shifts[o] - 1);
  const int64_t scaled = ((sum + (c->bias ? c->bias[o] : 0)) * c->scales[o] + half) >> c->shifts[o];
  return (int16_t)(scaled < c->lo ? c->lo : scaled > c->hi ? c->hi : scaled);
}

// An output pixel by its coordinates.
typedef struct {
  int32_t image, oy, ox;
} Place;

INLINE Place place_of(const Short *c, int32_t pixel) {
  const int32_t row = pixel / c->ow, image = row / c->oh;
  return (Place){image, row - image * c->oh, pixel - row * c->ow};
}

// Where a tap lies, its group's first channel being `first`; none outside the image.
INLINE const int16_t *tap_at(const Short *c, const Place *p, int32_t ky, int32_t kx, int32_t first) {
  const int32_t iy = source(p->oy, ky * c->dilation_h, c->stride_h, c->pad_top, c->transposed);
  const int32_t ix = source(p->ox, kx * c->dilation_w, c->stride_w, c->pad_left, c->transposed);
  const int inside = iy >= 0 && iy < c->ih && ix >= 0 && ix < c->iw;
  return inside ? c->x + ((p->image * c->ih + iy) * c->iw + ix) * c->ci + first : 0;
}

enum { PART = 256 };  // products of 2^15 by 2^7 whose sum fits 31 bits

// Any convolution, output by output.
static void one_pixel(const Short *c, int32_t pixel) {
  const Place p = place_of(c, pixel);
  for (int32_t o = 0; o < c->co; o++) {
    int64_t sum = 0;
    for (int32_t tap = 0; tap < c->kh * c->kw; tap++) {
      const int16_t *from = tap_at(c, &p, tap / c->kw, tap % c->kw, o / c->out_group * c->in_group);
      const int8_t *by = c->w + o * c->w_out + tap * c->w_tap;
      for (int32_t at = 0; from && at < c->in_group; at += PART) {
        const int32_t last = at + PART < c->in_group ? at + PART : c->in_group;
        int32_t part = 0;
        for (int32_t k = at; k < last; k++) part += (int32_t)from[k] * by[k];
        sum += part;
      }
    }
    c->y[pixel * c->co + o] = stored_short(c, sum, o);
  }
}

#if SIMD
enum { ROWS = 4, ROOM = 8192 };  // pixels at once, and what their windows take

// The window of a pixel's group as one run, zeros for what lies outside the image and up to a multiple of 8.
static void bring(const Short *c, int32_t pixel, int32_t first, int16_t *to) {
  const Place p = place_of(c, pixel);
  for (int32_t ky = 0; ky < c->kh; ky++) {
    for (int32_t kx = 0; kx < c->kw; kx++, to += c->in_group) {
      const int16_t *from = tap_at(c, &p, ky, kx, first);
      NO_UNROLL for (int32_t k = 0; k < c->in_group; k += 8) v8s_store(to + k, from ? v8s_load(from + k) : (v8s){});
    }
  }
  v8s_store(to, (v8s){});
}

// All outputs of `rows` pixels whose windows are one run of weights.
INLINE void some_pixels(const Short *c, int32_t pixel, const int rows) {
  const int32_t depth = c->kh * c->kw * c->in_group, step = (depth + 7) / 8 * 8 + 8;
  int16_t block[ROOM + 2 * 8 * ROWS];
  for (int32_t o = 0; o < c->co; o++) {
    if (o % c->out_group == 0) {
      for (int r = 0; r < rows; r++) bring(c, pixel + r, o / c->out_group * c->in_group, block + r * step);
    }
    const int8_t *by = c->w + o * c->w_out;
    int64_t sums[ROWS] = {};
    for (int32_t at = 0; at < depth; at += PART) {
      const int32_t last = at + PART < depth ? at + PART : depth;
      v4i acc[ROWS] = {};
      NO_UNROLL for (int32_t k = at; k < last; k += 8) {
        const v8s b = v8s_widen(v8b_load(by + k));
        UNROLL for (int r = 0; r < rows; r++) acc[r] += v4i_dot_i16(v8s_load(block + r * step + k), b);
      }
      UNROLL for (int r = 0; r < rows; r++) sums[r] += v4i_sum(acc[r]);
    }
    UNROLL for (int r = 0; r < rows; r++) c->y[(pixel + r) * c->co + o] = stored_short(c, sums[r], o);
  }
}

// All channels of a pixel, one filter each whose taps are rows of weights.
INLINE void one_by_channels(const Short *c, int32_t pixel) {
  const Place p = place_of(c, pixel);
  const int16_t *taps[PART];
  int32_t count = 0, rows[PART];
  for (int32_t tap = 0; tap < c->kh * c->kw; tap++) {
    taps[count] = tap_at(c, &p, tap / c->kw, tap % c->kw, 0);
    rows[count] = tap * c->w_tap;
    count += taps[count] != 0;
  }
  for (int32_t o = 0; o < c->co; o += 8) {
    v4i low = v4i_splat(0), high = low;
    NO_UNROLL for (int32_t tap = 0; tap < count; tap++) {
      const v8s a = v8s_load(taps[tap] + o), b = v8s_widen(v8b_load(c->w + rows[tap] + o));
      low += v4i_widen_low(a) * v4i_widen_low(b);
      high += v4i_widen_high(a) * v4i_widen_high(b);
    }
    for (int32_t k = 0; k < 8 && o + k < c->co; k++) {
      c->y[pixel * c->co + o + k] = stored_short(c, k < 4 ? low[k & 3] : high[k & 3], o + k);
    }
  }
}
#endif

void i16_conv2d_nhwc(const int16_t *restrict x, const int8_t *restrict w, const int64_t *restrict bias,
                     const int32_t *restrict scales, const int32_t *restrict shifts, int16_t *restrict y, int32_t ih,
                     int32_t iw, int32_t ci, int32_t kh, int32_t kw, int32_t oh, int32_t ow, int32_t co, int32_t groups,
                     int32_t w_out, int32_t w_tap, int32_t stride_h, int32_t stride_w, int32_t dilation_h,
                     int32_t dilation_w, int32_t pad_top, int32_t pad_left, int32_t transposed, int32_t narrow, int32_t lo,
                     int32_t hi, int32_t begin, int32_t end) {
  const int32_t in_group = ci / groups, out_group = co / groups;
  const Short c = {x, w, bias, scales, shifts, y, ih, iw, ci, kh, kw, oh, ow, co, in_group, out_group, w_out, w_tap,
                   stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, transposed, narrow, lo, hi};
  int32_t pixel = begin;
#if SIMD
  const int32_t taps = kh * kw, depth = taps * in_group;
  if (w_tap == in_group && depth <= ROOM / ROWS) {
    for (; pixel + ROWS <= end; pixel += ROWS) some_pixels(&c, pixel, ROWS);
  }
  if (w_tap == in_group && depth <= ROOM) {
    for (; pixel < end; pixel++) some_pixels(&c, pixel, 1);
  }
  if (w_out == 1 && groups == ci && ci == co && taps <= PART) {
    for (; pixel < end; pixel++) one_by_channels(&c, pixel);
  }
#endif
  for (; pixel < end; pixel++) one_pixel(&c, pixel);
}
