// f32 maximum pooling that also tells which tap won, NHWC, any window without dilation.
//
//   x     [n, ih, iw, c]  read
//   y     [n, oh, ow, c]  written in full, clamped to [lo, hi]
//   taps  [n, oh, ow, c]  written in full: ky * kw + kx + 0.1 of the first largest tap, row by row, or
//                         column by column where by_columns is not 0
//   Needs: neither result overlaps x; every window touches a pixel of the image. Padded taps never win.
//
// Units: output pixels, n * oh * ow.
// Source: MediaPipe's max_pool_argmax.cc, whose taps are floats that readers truncate; XNNPACK's indirection.c
//         (xnn_indirection_init_maxpool2d), which looks at a window column by column
#include "simd.h"

void f32_max_pool_with_argmax2d_nhwc(const float *restrict x, float *restrict y, float *restrict taps, int32_t n,
                                     int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow, int32_t kh, int32_t kw,
                                     int32_t sh, int32_t sw, int32_t pad_top, int32_t pad_left, int32_t by_columns,
                                     float lo, float hi, int32_t begin, int32_t end) {
  (void)n;
  const int32_t outer = by_columns ? kw : kh, inner = by_columns ? kh : kw;
  for (int32_t pixel = begin; pixel < end; pixel++) {
    const int32_t row = pixel / ow, image = row / oh;
    const int32_t iy = (row - image * oh) * sh - pad_top, ix = (pixel - row * ow) * sw - pad_left;
    for (int32_t channel = 0; channel < c; channel += 4) {
      v4f best = v4f_splat(-__builtin_inff()), winner = v4f_splat(0.0f);
      for (int32_t i = 0; i < outer; i++) {
        for (int32_t j = 0; j < inner; j++) {
          const int32_t ky = by_columns ? j : i, kx = by_columns ? i : j;
          if ((uint32_t)(iy + ky) >= (uint32_t)ih || (uint32_t)(ix + kx) >= (uint32_t)iw) continue;
          const v4f value = v4f_load(x + ((image * ih + iy + ky) * iw + ix + kx) * c + channel);
          const v4i larger = (value > best) | ((value != value) & (best == best));  // a NaN is the largest
          best = v4f_select(larger, value, best);
          winner = v4f_select(larger, v4f_splat((float)(ky * kw + kx)), winner);
        }
      }
      const v4f result = v4f_clamp(best, v4f_splat(lo), v4f_splat(hi)), tap = winner + v4f_splat(0.1f);
      const int32_t at = pixel * c + channel;
      if (c - channel >= 4) {
        v4f_store(y + at, result);
        v4f_store(taps + at, tap);
      } else {
        v4f_store_first(y + at, result, c - channel);
        v4f_store_first(taps + at, tap, c - channel);
      }
    }
  }
}
