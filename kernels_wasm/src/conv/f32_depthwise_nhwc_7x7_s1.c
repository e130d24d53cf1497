// f32 depthwise convolution, NHWC, 7x7 window, stride 1. Contract: depthwise_tile.h
#define K 7
#define S 1
#define B 6  // with seven taps and a column, all registers
#define KERNEL f32_depthwise_nhwc_7x7_s1
#include "simd.h"
#if SIMD
#include "depthwise_tile.h"
#else  // as long as the kernel for any window, and no faster
void f32_depthwise_nhwc(const float *x, const float *w, float *y, int32_t n, int32_t ih, int32_t iw, int32_t c,
                        int32_t x_stride, int32_t oh, int32_t ow, int32_t y_stride, int32_t kh, int32_t kw, int32_t sh,
                        int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual,
                        int32_t residual_c, const float *slope, int32_t act, float lo, float hi, int32_t begin,
                        int32_t end);

void KERNEL(const float *x, const float *w, float *y, int32_t n, int32_t ih, int32_t iw, int32_t c, int32_t x_stride,
            int32_t oh, int32_t ow, int32_t y_stride, int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh,
            int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual, int32_t residual_c,
            const float *slope, int32_t act, float lo, float hi, const float *post, float factor, int32_t begin,
            int32_t end) {
  (void)post, (void)factor;
  f32_depthwise_nhwc(x, w, y, n, ih, iw, c, x_stride, oh, ow, y_stride, kh, kw, sh, sw, dh, dw, pad_top, pad_left,
                     residual, residual_c, slope, act, lo, hi, begin, end);
}
#endif
