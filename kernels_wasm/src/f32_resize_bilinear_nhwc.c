// f32 bilinear resampling, NHWC.
//
//   x  [n, ih, iw, c]  read
//   y  [n, oh, ow, c]  written in full
//   how: RESAMPLE_PLAIN, RESAMPLE_CORNERS or RESAMPLE_HALF_PIXEL of resample.h.  Needs: y does not overlap x.
//
// Units: output rows, n * oh.
#include "resample.h"
#include "simd.h"

#define CHUNK 256  // output columns whose positions are computed once for all rows

typedef struct {
  int32_t low, high;  // offsets of both input pixels in a row
  float weight;       // of the second
} Column;

INLINE v4f mix(v4f a, v4f b, v4f weight) { return a + (b - a) * weight; }

static void resize_pixels(const float *upper, const float *lower, float vertical, const Column *columns, int32_t count,
                          float *y, int32_t c) {
  const v4f wy = v4f_splat(vertical);
  for (int32_t i = 0; i < count; i++, y += c) {
    const float *p00 = upper + columns[i].low, *p01 = upper + columns[i].high;
    const float *p10 = lower + columns[i].low, *p11 = lower + columns[i].high;
    const v4f wx = v4f_splat(columns[i].weight);
    for (int32_t k = 0; k < c; k += 4) {
      const v4f top = mix(v4f_load(p00 + k), v4f_load(p01 + k), wx);
      const v4f bottom = mix(v4f_load(p10 + k), v4f_load(p11 + k), wx);
      const v4f value = mix(top, bottom, wy);
      if (c - k >= 4) {
        v4f_store(y + k, value);
      } else {
        v4f_store_first(y + k, value, c - k);
      }
    }
  }
}

void f32_resize_bilinear_nhwc(const float *restrict x, float *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t c,
                              int32_t oh, int32_t ow, int32_t how, int32_t begin, int32_t end) {
  (void)n;
  Column columns[CHUNK];
  for (int32_t first = 0; first < ow; first += CHUNK) {
    const int32_t count = ow - first < CHUNK ? ow - first : CHUNK;
    for (int32_t i = 0; i < count; i++) {
      const double at = resample_clamp(resample_position(first + i, iw, ow, how), iw);
      const int32_t low = (int32_t)at;
      columns[i] = (Column){low * c, (low + 1 < iw ? low + 1 : low) * c, (float)(at - low)};
    }
    for (int32_t row = begin; row < end; row++) {
      const int32_t image = row / oh;
      const double at = resample_clamp(resample_position(row - image * oh, ih, oh, how), ih);
      const int32_t low = (int32_t)at, high = low + 1 < ih ? low + 1 : low;
      const float *base = x + image * ih * iw * c;
      resize_pixels(base + low * iw * c, base + high * iw * c, (float)(at - low), columns, count,
                    y + (row * ow + first) * c, c);
    }
  }
}
