// f32 depthwise convolution, NHWC, any window, stride and dilation; 8 channels of one output pixel at a time.
//
//   x   [n, ih, iw, x_stride]        read: a pixel's c channels lie at its start
//   w   [ceil(c/4)][4 + kh*kw*4]     f32_pack_depthwise_weights's blocks: bias, then the taps
//   y   [n, oh, ow, y_stride]        written: the first c channels of each pixel
//   Needs: y overlaps neither x nor w.  Padded taps count as zero: they are left out.
//
// Units: output rows, n * oh.
#include "epilogue.h"
#include "window.h"

#if SIMD
#define SCALED_FLOATS 2048  // read at a time: they stay in the first cache while their channels take turns

// 4 or 8 channels, from `channel` on, of neighbouring pixels: x * w + bias and the activation.
INLINE void scale_columns(const float *x, const float *w, float *y, int32_t c, int32_t pixels, const Epilogue *e,
                          int32_t channel, const int sloped, const int blocks) {
  v4f bias[2], factor[2], slope[2];
  const v4f lo = v4f_splat(e->lo), hi = v4f_splat(e->hi);
  UNROLL for (int j = 0; j < blocks; j++) {
    bias[j] = v4f_load(w + 8 * j);
    factor[j] = v4f_load(w + 8 * j + 4);
    slope[j] = sloped ? v4f_load(e->slope + channel + 4 * j) : lo;
  }
  NO_UNROLL for (; pixels > 0; pixels--, x += c, y += c) {
    UNROLL for (int j = 0; j < blocks; j++) {
      const v4f sum = v4f_madd(v4f_load(x + 4 * j), factor[j], bias[j]);
      v4f_store(y + 4 * j, sloped ? prelu(sum, slope[j]) : v4f_clamp(sum, lo, hi));
    }
  }
}

// A window of one tap: a factor and a summand a channel, as fast as memory. Needs: whole vectors of channels.
static void scale_pixels(const float *x, const float *w, float *y, int32_t c, int32_t pixels, const Epilogue *e) {
  const int32_t most = SCALED_FLOATS / c + 1;
  for (int32_t count; pixels > 0; pixels -= count, x += count * c, y += count * c) {
    count = pixels < most ? pixels : most;
    for (int32_t channel = 0; channel < c; channel += 8) {
      const int sloped = e->act == ACTIVATION_PRELU, whole = c - channel >= 8;
      const float *from = x + channel, *weights = w + 2 * channel;
      float *to = y + channel;
      if (sloped && whole) scale_columns(from, weights, to, c, count, e, channel, 1, 2);
      else if (sloped) scale_columns(from, weights, to, c, count, e, channel, 1, 1);
      else if (whole) scale_columns(from, weights, to, c, count, e, channel, 0, 2);
      else scale_columns(from, weights, to, c, count, e, channel, 0, 1);
    }
  }
}
#endif

void f32_depthwise_nhwc(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih,
                        int32_t iw, int32_t c, int32_t x_stride, int32_t oh, int32_t ow, int32_t y_stride, int32_t kh,
                        int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left,
                        const float *residual, int32_t residual_c, const float *slope, int32_t act, float lo, float hi,
                        int32_t begin, int32_t end) {
  (void)n;
  const Window window = {ih, iw, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left};
  const Epilogue e = {residual, residual_c, slope, act, lo, hi};
#if SIMD
  const int simple = !residual && (act == ACTIVATION_CLAMP || act == ACTIVATION_PRELU);
  if (simple && kh * kw == 1 && oh == ih && ow == iw && c % 4 == 0 && x_stride == c && y_stride == c) {
    scale_pixels(x + begin * ow * c, w, y + begin * ow * c, c, (end - begin) * ow, &e);
    return;
  }
#endif
  const int32_t block = 4 + kh * kw * 4;
  for (int32_t pixel = begin * ow; pixel < end * ow; pixel++) {
    const Taps t = find_taps(&window, pixel);
    for (int32_t channel = 0; channel < c; channel += 8) {
      const float *first = w + channel / 4 * block, *second = channel + 4 < c ? first + block : first;
      const int32_t step = channel + 4 < c ? 4 : 0;
      v4f sum0 = v4f_load(first), sum1 = v4f_load(second);
      for (int32_t ky = t.top; ky < t.bottom; ky++) {
        const float *p = x + tap_row(&window, &t, ky) + channel;
        for (int32_t kx = t.left; kx < t.right; kx++, p += dw * x_stride) {
          const int32_t tap = 4 + (ky * kw + kx) * 4;
          sum0 = v4f_madd(v4f_load(p), v4f_load(first + tap), sum0);
          sum1 = v4f_madd(v4f_load(p + step), v4f_load(second + tap), sum1);
        }
      }
      float sums[8];
      v4f_store(sums, sum0);
      v4f_store(sums + 4, sum1);
      finish_channels(sums, y + pixel * y_stride + channel, pixel, channel, c - channel < 8 ? c - channel : 8, &e);
    }
  }
}
