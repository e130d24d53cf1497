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

#define WIDE 4  // vectors of channels that walk a window together

// y = the window's pool of `vectors` neighbouring vectors of channels.
INLINE void pool_channels(const int kind, const int vectors, v4f total[WIDE], const float *x, const Window *w,
                          const Taps *t, int32_t count_padding) {
  UNROLL for (int v = 0; v < vectors; v++) total[v] = v4f_splat(kind == MAX ? -__builtin_inff() : 0.0f);
  for (int32_t ky = t->top; ky < t->bottom; ky++) {
    const float *p = x + tap_row(w, t, ky);
    NO_UNROLL for (int32_t kx = t->left; kx < t->right; kx++, p += w->dw * w->c) {
      UNROLL for (int v = 0; v < vectors; v++) {
        const v4f value = v4f_load(p + 4 * v);
        if (kind == MAX) total[v] = v4f_max(total[v], value);
        if (kind == AVERAGE) total[v] = total[v] + value;
        if (kind == L2) total[v] = v4f_madd(value, value, total[v]);
      }
    }
  }
  const v4f count = v4f_splat((float)(count_padding ? w->kh * w->kw : count_taps(t)));
  UNROLL for (int v = 0; v < vectors; v++) {
    if (kind == AVERAGE) total[v] = total[v] / count;
    if (kind == L2) total[v] = v4f_sqrt(total[v]);
  }
}

INLINE void pool_unit(const int kind, const float *x, float *y, const Window *w, int32_t count_padding, float lo,
                      float hi, int32_t unit) {
  const int32_t blocks = (w->c + UNIT_CHANNELS - 1) / UNIT_CHANNELS;
  const int32_t pixel = blocks == 1 ? unit : unit / blocks, first = (unit - pixel * blocks) * UNIT_CHANNELS;
  const int32_t end = first + UNIT_CHANNELS < w->c ? first + UNIT_CHANNELS : w->c;
  const Taps t = find_taps(w, pixel);
  const v4f least = v4f_splat(lo), most = v4f_splat(hi);
  float *out = y + pixel * w->c;
  v4f total[WIDE];
  int32_t channel = first;
  for (; channel + 4 * WIDE <= end; channel += 4 * WIDE) {
    pool_channels(kind, WIDE, total, x + channel, w, &t, count_padding);
    UNROLL for (int v = 0; v < WIDE; v++) v4f_store(out + channel + 4 * v, v4f_clamp(total[v], least, most));
  }
  for (; channel < end; channel += 4) {
    pool_channels(kind, 1, total, x + channel, w, &t, count_padding);
    const v4f result = v4f_clamp(total[0], least, most);
    if (end - channel >= 4) {
      v4f_store(out + channel, result);
    } else {
      v4f_store_first(out + channel, result, end - channel);
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
