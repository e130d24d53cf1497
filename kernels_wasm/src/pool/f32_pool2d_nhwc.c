// f32 pooling, NHWC, any window: maximum, average, root of the sum of squares.
//
//   x  [n, ih, iw, c]  read
//   y  [n, oh, ow, c]  written in full, clamped to [lo, hi]
//   Needs: y does not overlap x; every window touches a pixel of the image.
//
// Padded taps are left out: they never win a maximum and count neither in a sum nor, unless count_padding, in the
// divisor of an average. A NaN is the largest.
// Windows of 2x2 that lie inside the image have a path without loops over taps.
// Units: 64 channels of one output pixel, n * oh * ow * ceil(c / 64), channels fastest.
#include "math.h"
#include "window.h"

enum { MAX, AVERAGE, L2 };

#define WIDE 4  // vectors of channels that walk a window together

// y = the window's pool of `vectors` neighbouring vectors of channels.
INLINE void pool_channels(const int kind, const int vectors, v4f total[WIDE], const float *x, const Window *w,
                          const Taps *t, int32_t count_padding) {
  v4i bad[WIDE];
  UNROLL for (int v = 0; v < vectors; v++) {
    total[v] = v4f_splat(kind == MAX ? -__builtin_inff() : 0.0f);
    bad[v] = v4i_splat(0);
  }
  for (int32_t ky = t->top; ky < t->bottom; ky++) {
    const float *p = x + tap_row(w, t, ky);
    NO_UNROLL for (int32_t kx = t->left; kx < t->right; kx++, p += w->dw * w->c) {
      UNROLL for (int v = 0; v < vectors; v++) {
        const v4f value = v4f_load(p + 4 * v);
        if (kind == MAX) total[v] = v4f_max(value, total[v]);  // drops a NaN
        if (kind == MAX) bad[v] |= value != value;
        if (kind == AVERAGE) total[v] = total[v] + value;
        if (kind == L2) total[v] = v4f_madd(value, value, total[v]);
      }
    }
  }
  const v4f count = v4f_splat((float)(count_padding ? w->kh * w->kw : count_taps(t)));
  UNROLL for (int v = 0; v < vectors; v++) {
    if (kind == MAX) total[v] = v4f_select(bad[v], v4f_nan(), total[v]);
    if (kind == AVERAGE) total[v] = total[v] / count;
    if (kind == L2) total[v] = v4f_sqrt(total[v]);
  }
}

// The channels [first, end) of one output pixel.
INLINE void pool_pixel(const int kind, const float *x, float *out, const Window *w, const Taps *t,
                       int32_t count_padding, v4f least, v4f most, int32_t first, int32_t end) {
  v4f total[WIDE];
  int32_t channel = first;
  for (; channel + 4 * WIDE <= end; channel += 4 * WIDE) {
    pool_channels(kind, WIDE, total, x + channel, w, t, count_padding);
    UNROLL for (int v = 0; v < WIDE; v++) v4f_store(out + channel + 4 * v, v4f_clamp(total[v], least, most));
  }
  for (; channel < end; channel += 4) {
    pool_channels(kind, 1, total, x + channel, w, t, count_padding);
    const v4f result = v4f_clamp(total[0], least, most);
    if (end - channel >= 4) {
      v4f_store(out + channel, result);
    } else {
      v4f_store_first(out + channel, result, end - channel);
    }
  }
}

// One vector of a 2x2 window whose rows are `pitch` and pixels `step` floats apart.
INLINE v4f pool_square(const int kind, const float *p, int32_t step, int32_t pitch, v4f least, v4f most) {
  v4f total = v4f_splat(kind == MAX ? -__builtin_inff() : 0.0f);
  v4i bad = v4i_splat(0);
  UNROLL for (int i = 0; i < 4; i++) {
    const v4f value = v4f_load(p + (i & 1) * step + (i >> 1) * pitch);
    if (kind == MAX) total = v4f_max(value, total);
    if (kind == MAX) bad |= value != value;
    if (kind == AVERAGE) total = total + value;
    if (kind == L2) total = v4f_madd(value, value, total);
  }
  if (kind == MAX) total = v4f_select(bad, v4f_nan(), total);
  if (kind == AVERAGE) total = total * v4f_splat(0.25f);
  if (kind == L2) total = v4f_sqrt(total);
  return v4f_clamp(total, least, most);
}

INLINE void pool_squares(const int kind, const float *p, float *out, int32_t step, int32_t pitch, v4f least, v4f most,
                         int32_t count) {
  for (; count >= 4; count -= 4, p += 4, out += 4) v4f_store(out, pool_square(kind, p, step, pitch, least, most));
  if (count > 0) v4f_store_first(out, pool_square(kind, p, step, pitch, least, most), count);
}

INLINE void pool(const int kind, const float *x, float *y, const Window *w, int32_t count_padding, float lo, float hi,
                 int32_t begin, int32_t end) {
  const int32_t blocks = (w->c + POOL_UNIT_CHANNELS - 1) / POOL_UNIT_CHANNELS, pitch = w->iw * w->c;
  const int squares = w->kh == 2 && w->kw == 2 && w->dh == 1 && w->dw == 1;
  const v4f least = v4f_splat(lo), most = v4f_splat(hi);
  int32_t pixel = begin / blocks, block = begin - pixel * blocks;
  int32_t row = pixel / w->ow, ox = pixel - row * w->ow, image = row / w->oh, oy = row - image * w->oh;
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t first = block * POOL_UNIT_CHANNELS, stop = first + POOL_UNIT_CHANNELS < w->c ? first + POOL_UNIT_CHANNELS : w->c;
    const int32_t iy = oy * w->sh - w->pad_top, ix = ox * w->sw - w->pad_left;
    float *out = y + pixel * w->c;
    if (squares && iy >= 0 && ix >= 0 && iy + 2 <= w->ih && ix + 2 <= w->iw) {
      const float *corner = x + ((image * w->ih + iy) * w->iw + ix) * w->c + first;
      pool_squares(kind, corner, out + first, w->c, pitch, least, most, stop - first);
    } else {
      const Taps t = find_taps(w, pixel);
      pool_pixel(kind, x, out, w, &t, count_padding, least, most, first, stop);
    }
    if (++block < blocks) continue;
    block = 0;
    pixel++;
    if (++ox < w->ow) continue;
    ox = 0;
    if (++oy < w->oh) continue;
    oy = 0;
    image++;
  }
}

#define POOL(NAME, KIND)                                                                                              \
  void NAME(const float *restrict x, float *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t c, int32_t oh,     \
            int32_t ow, int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,      \
            int32_t pad_left, int32_t count_padding, float lo, float hi, int32_t begin, int32_t end) {                \
    (void)n;                                                                                                          \
    const Window w = {ih, iw, c, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left};                                  \
    pool(KIND, x, y, &w, count_padding, lo, hi, begin, end);                                                          \
  }

POOL(f32_max_pool2d_nhwc, MAX)
POOL(f32_average_pool2d_nhwc, AVERAGE)
POOL(f32_l2_pool2d_nhwc, L2)
