// Convolution of int16 data with int8 weights: 64-bit sums, scaled by a multiplier of 15 bits, as TFLite's are.
//
//   x       [n, ih, iw, ci] int16            read
//   w       [co, kh, kw, ci/groups] int8; depthwise: [1, kh, kw, co], read with steps `w_out` and `w_in`   read
//   bias    [co] int64, or none              read
//   scales  [co] int32: multipliers          read
//   shifts  [co] int32: right shifts         read
//   y       [n, oh, ow, co] int16            written
//   transposed  1: a transposed convolution of one group, whose strides and pads are those of its input    else 0
// Needs: y overlaps nothing.
//
// Units: pixels of y, n * oh * ow. Zero points of x and w are 0, the padding is too; y = (sum * scale + half) >> shift,
// clamped to lo..hi.
// Source: tensorflow v2.18.0, lite/kernels/internal/common.cc, MultiplyByQuantizedMultiplier of int64
#include "simd.h"

// Where a tap reads; -1 where it reads nothing.
INLINE int32_t source(int32_t at, int32_t tap, int32_t stride, int32_t pad, int32_t transposed) {
  if (!transposed) return at * stride + tap - pad;
  const int32_t reached = at + pad - tap;
  return reached < 0 || reached % stride ? -1 : reached / stride;
}

void i16_conv2d_nhwc(const int16_t *restrict x, const int8_t *restrict w, const int64_t *restrict bias,
                     const int32_t *restrict scales, const int32_t *restrict shifts, int16_t *restrict y, int32_t ih,
                     int32_t iw, int32_t ci, int32_t kh, int32_t kw, int32_t oh, int32_t ow, int32_t co, int32_t groups,
                     int32_t w_out, int32_t w_tap, int32_t stride_h, int32_t stride_w, int32_t dilation_h,
                     int32_t dilation_w, int32_t pad_top, int32_t pad_left, int32_t transposed, int32_t lo, int32_t hi,
                     int32_t begin, int32_t end) {
  const int32_t in_group = ci / groups, out_group = co / groups;
  for (int32_t pixel = begin; pixel < end; pixel++) {
    const int32_t ox = pixel % ow, oy = pixel / ow % oh, image = pixel / ow / oh;
    for (int32_t o = 0; o < co; o++) {
      const int32_t first = o / out_group * in_group;
      int64_t sum = bias ? bias[o] : 0;
      for (int32_t ky = 0; ky < kh; ky++) {
        const int32_t iy = source(oy, ky * dilation_h, stride_h, pad_top, transposed);
        if (iy < 0 || iy >= ih) continue;
        for (int32_t kx = 0; kx < kw; kx++) {
          const int32_t ix = source(ox, kx * dilation_w, stride_w, pad_left, transposed);
          if (ix < 0 || ix >= iw) continue;
          const int16_t *from = x + ((image * ih + iy) * iw + ix) * ci + first;
          const int8_t *by = w + o * w_out + (ky * kw + kx) * w_tap;
          // 256 products of 2^15 by 2^7 fit 31 bits.
          for (int32_t c = 0; c < in_group; c += 256) {
            const int32_t last = c + 256 < in_group ? c + 256 : in_group;
            int32_t part = 0;
            for (int32_t k = c; k < last; k++) part += (int32_t)from[k] * by[k];
            sum += part;
          }
        }
      }
      const int64_t half = (int64_t)1 << (shifts[o] - 1);
      const int64_t scaled = (sum * scales[o] + half) >> shifts[o];
      y[pixel * co + o] = (int16_t)(scaled < lo ? lo : scaled > hi ? hi : scaled);
    }
  }
}
