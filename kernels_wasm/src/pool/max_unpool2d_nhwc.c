// Undoes a maximum pooling with taps, NHWC: x goes to the tap that won, the rest of y is zero.
//
//   x, taps  [n, ih, iw, c]  read; taps are floats, truncated to ky * kw + kx
//   y        [n, oh, ow, c]  written in full
//   Needs: y overlaps neither.
//
// Where windows overlap, the last x in row-major order wins; a tap outside the window or outside y is dropped.
// By hand: the described kernel looks for the winner of each element of y: 2.6 to 6.4 times the time (windows of 2x2,
// three shapes, wasmtime, 2026-11-28).
// Units: images, n.
#include "simd.h"

#define UNPOOL(NAME, T)                                                                                                \
  void NAME(const T *restrict x, const float *restrict taps, T *restrict y, int32_t ih, int32_t iw, int32_t c,         \
            int32_t oh, int32_t ow, int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t pad_top,                   \
            int32_t pad_left, int32_t begin, int32_t end) {                                                            \
    for (int32_t image = begin; image < end; image++) {                                                                \
      T *to = y + image * oh * ow * c;                                                                                 \
      for (int32_t i = 0; i < oh * ow * c; i++) to[i] = 0;                                                             \
      for (int32_t pixel = 0; pixel < ih * iw; pixel++) {                                                              \
        const int32_t top = pixel / iw * sh - pad_top, left = pixel % iw * sw - pad_left;                              \
        for (int32_t channel = 0; channel < c; channel++) {                                                            \
          const int32_t from = (image * ih * iw + pixel) * c + channel, tap = i32_from_f32(taps[from]);                \
          if (tap < 0 || tap >= kh * kw) continue;                                                                     \
          const int32_t ky = tap / kw, oy = top + ky, ox = left + tap - ky * kw;                                       \
          if ((uint32_t)oy < (uint32_t)oh && (uint32_t)ox < (uint32_t)ow) to[(oy * ow + ox) * c + channel] = x[from];  \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }

UNPOOL(b8_max_unpool2d_nhwc, uint8_t)
UNPOOL(b16_max_unpool2d_nhwc, uint16_t)
UNPOOL(b32_max_unpool2d_nhwc, uint32_t)
UNPOOL(b64_max_unpool2d_nhwc, uint64_t)
