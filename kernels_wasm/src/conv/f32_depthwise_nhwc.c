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

void f32_depthwise_nhwc(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih,
                        int32_t iw, int32_t c, int32_t x_stride, int32_t oh, int32_t ow, int32_t y_stride, int32_t kh,
                        int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left,
                        const float *residual, int32_t residual_c, const float *slope, int32_t act, float lo, float hi,
                        int32_t begin, int32_t end) {
  (void)n;
  const Window window = {ih, iw, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left};
  const Epilogue e = {residual, residual_c, slope, act, lo, hi};
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
