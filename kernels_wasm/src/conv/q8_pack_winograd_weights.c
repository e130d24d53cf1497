// Transforms 3x3 weights of 8 bits for q8_conv2d_nhwc_winograd: a window's 9 weights become 36 of int16.
//
//   y  [ceil(co/8)] panels written: 8 int32 sums to start from, 8 float32 scales, then [36][ci/2][8][2] int16
//   The rest is that of q8_pack_weights.c. Columns past co are zero.
//   Needs: ci is even; y overlaps nothing that is read.
// Units: panels, ceil(co / 8).
#include "q8_winograd.h"

enum { COLUMNS = Q8_COLUMNS, HEAD = Q8_WINOGRAD_HEAD_BYTES, POINTS = SIDE * SIDE };

// The transform of one window to y[36][step], `y` that of the first point.
INLINE void turn_window(const int32_t w[3][3], int16_t *y, int32_t step) {
  int32_t half[3][SIDE], column[SIDE];
  NO_UNROLL for (int32_t i = 0; i < 3; i++) turn_weights(w[0][i], w[1][i], w[2][i], half[i]);
  NO_UNROLL for (int32_t k = 0; k < SIDE; k++) {
    turn_weights(half[0][k], half[1][k], half[2][k], column);
    NO_UNROLL for (int32_t i = 0; i < SIDE; i++, y += step) *y = (int16_t)column[i];
  }
}

void q8_pack_winograd_weights(const uint8_t *restrict w, const int32_t *restrict bias, const float *restrict scales,
                              const int32_t *restrict zeros, uint8_t *restrict y, int32_t co, int32_t ci,
                              int32_t co_step, int32_t tap_step, int32_t ci_step, int32_t w_signed, int32_t x_zero,
                              int32_t begin, int32_t end) {
  const int32_t step = ci * COLUMNS, bytes = HEAD + 2 * POINTS * step;
  for (int32_t panel = begin; panel < end; panel++) {
    int32_t *sums = (int32_t *)(y + panel * bytes);
    float *factors = (float *)(sums + COLUMNS);
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column, there = o < co, zero = there ? zeros[o] : 0;
      int32_t total = 0;
      for (int32_t c = 0; c < ci; c++) {
        int32_t window[3][3];
        NO_UNROLL for (int32_t t = 0; t < 9; t++) {
          const uint8_t byte = there ? w[o * co_step + t * tap_step + c * ci_step] : 0;
          const int32_t weight = (w_signed ? (int8_t)byte : byte) - zero;
          window[t / 3][t % 3] = weight;
          total += weight;
        }
        turn_window(window, (int16_t *)((uint8_t *)sums + HEAD) + (c / 2 * COLUMNS + column) * 2 + c % 2, step);
      }
      sums[column] = (there && bias ? bias[o] : 0) - x_zero * total;
      factors[column] = there ? scales[o] : 0.0f;
    }
  }
}
