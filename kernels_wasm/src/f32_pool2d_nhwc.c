// f32 pooling, NHWC, any window: maximum, average, root of the sum of squares.
//
//   x  [n, ih, iw, c]  read
//   y  [n, oh, ow, c]  written in full, clamped to [lo, hi]
//   Needs: y does not overlap x; every window touches a pixel of the image.
//
// Padded taps are left out: they never win a maximum and count neither in a sum nor, unless count_padding, in the
// divisor of an average.
// Units: 64 channels of one output pixel, n * oh * ow * ceil(c / 64), channels fastest.
#include "window.h"

#define UNIT_CHANNELS 64
enum { MAX, AVERAGE, L2 };

INLINE v4f pool_channels(const int kind, const float *x, const Window *w, const Taps *t, int32_t count_padding) {
  v4f total = v4f_splat(kind == MAX ? -__builtin_inff() : 0.0f);
  for (int32_t ky = t->top; ky < t->bottom; ky++) {
    const float *p = x + tap_row(w, t, ky);
    for (int32_t kx = t->left; kx < t->right; kx++, p += w->dw * w->c) {
      const v4f value = v4f_load(p);
      total = kind == MAX ? v4f_max(total, value) : kind == AVERAGE ? total + value : v4f_madd(value, value, total);
    }
  }
  if (kind == L2) return v4f_sqrt(total);
  if (kind == MAX) return total;
  return total / v4f_splat((float)(count_padding ? w->kh * w->kw : count_taps(t)));
}

INLINE void pool_unit(const int kind, const float *x, float *y, const Window *w, int32_t count_padding, float lo, float hi,
                      int32_t unit) {
  const int32_t blocks = (w->c + UNIT_CHANNELS - 1) / UNIT_CHANNELS;
  const int32_t pixel = unit / blocks, first = (unit - pixel * blocks) * UNIT_CHANNELS;
  const int32_t end = first + UNIT_CHANNELS < w->c ? first + UNIT_CHANNELS : w->c;
  const Taps t = find_taps(w, pixel);
  for (int32_t channel = first; channel < end; channel += 4) {
    const v4f pooled = pool_channels(kind, x + channel, w, &t, count_padding);
    const v4f result = v4f_clamp(pooled, v4f_splat(lo), v4f_splat(hi));
    float *out = y + pixel * w->c + channel;
    if (w->c - channel >= 4) {
      v4f_store(out, result);
    } else {
      v4f_store_first(out, result, w->c - channel);
    }
  }
}

#define POOL(NAME, KIND)                                                                                              \
  void NAME(const float *restrict x, float *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t c, int32_t oh,     \
            int32_t ow, int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,      \
            int32_t pad_left, int32_t count_padding, float lo, float hi, int32_t begin, int32_t end) {                \
    (void)n;                                                                                                          \
    const Window w = {ih, iw, c, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left};                                  \
    for (int32_t unit = begin; unit < end; unit++) pool_unit(KIND, x, y, &w, count_padding, lo, hi, unit);            \
  }

POOL(f32_max_pool2d_nhwc, MAX)
POOL(f32_average_pool2d_nhwc, AVERAGE)
POOL(f32_l2_pool2d_nhwc, L2)
