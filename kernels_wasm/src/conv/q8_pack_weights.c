// Packs 8-bit weights into panels of 8 outputs for q8_conv2d_nhwc and q8_depthwise_nhwc.
//
//   w       weight (output o, tap t, channel c) is the byte w[o*co_step + t*tap_step + c*ci_step]   read
//   order   [taps] int32, the tap that comes at each place of a panel, or 0 for theirs   read
//   bias    [co] int32 or 0      scales [co] float32      zeros [co] int32, the weights' zero points   read
//   y       [ceil(co/8)] panels written: 8 int32 sums to start from, 8 float32 scales, then for each pair of
//           k = place*ci + c: 8 columns of 2 int16. Columns past co and an odd last k are zero.
//
// The sums start at bias - x_zero * sum(w - zero), so that a kernel multiplies x as it is stored. x_zero belongs to the
// uint8 form of x. Needs: y overlaps nothing that is read.
// Units: panels, ceil(co / 8).
#include "simd.h"

enum { COLUMNS = Q8_COLUMNS, HEAD = Q8_HEAD_BYTES / 2 };  // HEAD: int16 units before the weights

void q8_pack_weights(const uint8_t *restrict w, const int32_t *restrict bias, const float *restrict scales,
                     const int32_t *restrict zeros, const int32_t *restrict order, int16_t *restrict y, int32_t co,
                     int32_t taps, int32_t ci, int32_t co_step, int32_t tap_step, int32_t ci_step, int32_t w_signed,
                     int32_t x_zero, int32_t begin, int32_t end) {
  const int32_t depth = taps * ci, pairs = (depth + 1) / 2;
  for (int32_t panel = begin; panel < end; panel++) {
    int16_t *to = y + panel * (HEAD + pairs * 2 * COLUMNS);
    int32_t *sums = (int32_t *)to;
    float *factors = (float *)(to + 2 * COLUMNS);
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column, inside = o < co;
      int16_t *cell = to + HEAD + 2 * column;
      int32_t total = 0, k = 0;
      for (int32_t place = 0; place < taps; place++) {
        const int32_t t = order ? order[place] : place;
        for (int32_t c = 0; c < ci; c++, k++) {
          int32_t weight = 0;
          if (inside) {
            const uint8_t byte = w[o * co_step + t * tap_step + c * ci_step];
            weight = (w_signed ? (int8_t)byte : byte) - zeros[o];
          }
          cell[(k >> 1) * 2 * COLUMNS + (k & 1)] = (int16_t)weight;
          total += weight;
        }
      }
      if (k & 1) cell[(k >> 1) * 2 * COLUMNS + 1] = 0;
      sums[column] = (inside && bias ? bias[o] : 0) - x_zero * total;
      factors[column] = inside ? scales[o] : 0.0f;
    }
  }
}
