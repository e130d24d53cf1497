// Bilinear resampling of quantised bytes, NHWC, with weights of 11 bits; both tensors have one scale and zero point.
//
//   x  [n, ih, iw, c]  read
//   y  [n, oh, ow, c]  written in full
//   how: RESAMPLE_PLAIN, RESAMPLE_CORNERS or RESAMPLE_HALF_PIXEL of resample.h.  Needs: y does not overlap x.
//
// Positions and weights are float32, as XNNPACK computes them; the sum rounds halves up.
// Units: output rows, n * oh.
#include "resample.h"

typedef struct {
  int32_t low, high, weight;  // both input pixels, the second one's share in 2048ths
} Sample;

static Sample sample(int32_t at, int32_t size, int32_t count, int32_t how) {
  float position = (float)at * ((float)size / (float)count);
  if (how == RESAMPLE_CORNERS && count > 1) position = (float)at * ((float)(size - 1) / (float)(count - 1));
  if (how == RESAMPLE_HALF_PIXEL) position = ((float)at + 0.5f) * ((float)size / (float)count) - 0.5f;
  const float last = (float)(size - 1);
  position = position < 0.0f ? 0.0f : position > last ? last : position;
  const int32_t low = (int32_t)position;
  const float share = __builtin_rintf((position - (float)low) * 2048.0f);
  return (Sample){low, low + 1 < size ? low + 1 : low, (int32_t)share};
}

#define RESIZE(NAME, T, SUM)                                                                                           \
  void NAME(const T *restrict x, T *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow,  \
            int32_t how, int32_t begin, int32_t end) {                                                                 \
    (void)n;                                                                                                           \
    for (int32_t row = begin; row < end; row++) {                                                                      \
      const int32_t image = row / oh;                                                                                  \
      const Sample v = sample(row - image * oh, ih, oh, how);                                                          \
      const T *upper = x + (image * ih + v.low) * iw * c, *lower = x + (image * ih + v.high) * iw * c;                 \
      for (int32_t ox = 0; ox < ow; ox++) {                                                                            \
        const Sample h = sample(ox, iw, ow, how);                                                                      \
        const T *p00 = upper + h.low * c, *p01 = upper + h.high * c, *p10 = lower + h.low * c, *p11 = lower + h.high * c; \
        T *out = y + (row * ow + ox) * c;                                                                              \
        for (int32_t k = 0; k < c; k++) {                                                                              \
          const SUM left = (SUM)p00[k] * 2048 + (SUM)(p10[k] - p00[k]) * v.weight;                                     \
          const SUM right = (SUM)p01[k] * 2048 + (SUM)(p11[k] - p01[k]) * v.weight;                                    \
          out[k] = (T)((left * 2048 + (right - left) * h.weight + (1 << 21)) >> 22);                                   \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }

RESIZE(i8_resize_bilinear_nhwc, int8_t, int32_t)
RESIZE(u8_resize_bilinear_nhwc, uint8_t, int32_t)
RESIZE(i16_resize_bilinear_nhwc, int16_t, int64_t)
