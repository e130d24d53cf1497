// Pooling of stored integers, NHWC, any window: maximum, and for quantised tensors the average.
//
//   x  [n, ih, iw, c]  read
//   y  [n, oh, ow, c]  written in full, clamped to [lo, hi] (types of up to 16 bits)
//   Needs: y does not overlap x; every window touches a pixel of the image.
//
// Padded taps are left out. An average rounds halves away from zero; both tensors have one scale and zero point.
// Units: output pixels, n * oh * ow.
#include "requantize.h"
#include "window.h"

// An average of bytes, eight channels at a time; the last eight of c may overlap the ones before. Needs: c >= 8.
static void average_bytes(const uint8_t *x, uint8_t *y, const Window *w, const Taps *t, int32_t flip, int32_t lo,
                          int32_t hi) {
  const int32_t count = count_taps(t);
  for (int32_t k = 0; k < w->c; k += 8) {
    const int32_t first = k + 8 <= w->c ? k : w->c - 8;
    v4i low = {}, high = {};
    int32_t totals[8];
    for (int32_t ky = t->top; ky < t->bottom; ky++) {
      const uint8_t *p = x + tap_row(w, t, ky) + first;
      NO_UNROLL for (int32_t kx = t->left; kx < t->right; kx++, p += w->dw * w->c) {
        const v8s values = load_shorts(p, flip);
        low += v4i_widen_low(values);
        high += v4i_widen_high(values);
      }
    }
    v4i_store(totals, low);
    v4i_store(totals + 4, high);
    NO_UNROLL for (int32_t i = 0; i < 8; i++) {
      const int32_t total = totals[i] - flip * count;
      const int32_t average = total >= 0 ? (total + count / 2) / count : -((-total + count / 2) / count);
      y[first + i] = (uint8_t)i32_clamp(average, lo, hi);
    }
  }
}
#define BYTES(FLIP)                                                                                       \
  if (c >= 8) {                                                                                           \
    average_bytes((const uint8_t *)x, (uint8_t *)y + pixel * c, &w, &t, FLIP, lo, hi);                    \
    continue;                                                                                             \
  }
#define NOTHING (void)0

// BODY sees `value`, the stored integer under one tap, and `total`; RESULT sees `total` and `count`. ALL may do all
// channels of a pixel at once.
#define POOL(NAME, T, SUM, START, BODY, RESULT, ALL)                                                                  \
  INLINE T NAME##_one(const T *x, const Window *w, const Taps *t, int32_t lo, int32_t hi) {                           \
    SUM total = START;                                                                                                \
    for (int32_t ky = t->top; ky < t->bottom; ky++) {                                                                 \
      const T *p = x + tap_row(w, t, ky);                                                                             \
      for (int32_t kx = t->left; kx < t->right; kx++, p += w->dw * w->c) {                                            \
        const T value = *p;                                                                                           \
        BODY;                                                                                                         \
      }                                                                                                               \
    }                                                                                                                 \
    const int32_t count = count_taps(t);                                                                              \
    (void)count, (void)lo, (void)hi;                                                                                  \
    return (T)(RESULT);                                                                                               \
  }                                                                                                                   \
  void NAME(const T *restrict x, T *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow, \
            int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,                  \
            int32_t pad_left, int32_t lo, int32_t hi, int32_t begin, int32_t end) {                                   \
    (void)n;                                                                                                          \
    const Window w = {ih, iw, c, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left};                                  \
    for (int32_t pixel = begin; pixel < end; pixel++) {                                                               \
      const Taps t = find_taps(&w, pixel);                                                                            \
      ALL;                                                                                                            \
      for (int32_t k = 0; k < c; k++) y[pixel * c + k] = NAME##_one(x + k, &w, &t, lo, hi);                           \
    }                                                                                                                 \
  }

#define LARGER total = value > total ? value : total
#define CLAMPED(v) ((v) < lo ? lo : (v) > hi ? hi : (v))
#define ROUNDED (total >= 0 ? (total + count / 2) / count : -((-total + count / 2) / count))

POOL(i8_max_pool2d_nhwc, int8_t, int32_t, INT8_MIN, LARGER, CLAMPED(total), NOTHING)
POOL(u8_max_pool2d_nhwc, uint8_t, int32_t, 0, LARGER, CLAMPED(total), NOTHING)
POOL(i16_max_pool2d_nhwc, int16_t, int32_t, INT16_MIN, LARGER, CLAMPED(total), NOTHING)
POOL(i32_max_pool2d_nhwc, int32_t, int32_t, INT32_MIN, LARGER, total, NOTHING)
POOL(u32_max_pool2d_nhwc, uint32_t, uint32_t, 0, LARGER, total, NOTHING)
POOL(i64_max_pool2d_nhwc, int64_t, int64_t, INT64_MIN, LARGER, total, NOTHING)
POOL(u64_max_pool2d_nhwc, uint64_t, uint64_t, 0, LARGER, total, NOTHING)
POOL(i8_average_pool2d_nhwc, int8_t, int32_t, 0, total += value, CLAMPED(ROUNDED), BYTES(0x80))
POOL(u8_average_pool2d_nhwc, uint8_t, int32_t, 0, total += value, CLAMPED(ROUNDED), BYTES(0))
POOL(i16_average_pool2d_nhwc, int16_t, int64_t, 0, total += value, CLAMPED(ROUNDED), NOTHING)
