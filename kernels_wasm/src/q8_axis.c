// Quantised sums and softmax along one axis, and functions of one byte.
//
//   lookup           y[i] = table[x[i]]: every function of one 8-bit tensor. Split by elements.
//   reduce_sum       y = clamp(round(sum(x - x_zero) * scale), lo, hi) + y_zero, ties to even; a mean is a scaled sum.
//                    Split by lines.
//   softmax          table[d] = e^(beta * scale_x * -d) as float64 for a distance d below the largest element;
//                    y = clamp(round(table / sum / scale), lo, hi) + y_zero. Split by lines.
//
//   x  [outer, r, inner] bytes, read       y  [outer, inner], softmax [outer, r, inner], bytes, written; no overlap
//   flip  0x80 for int8, 0 for uint8; zero points belong to the uint8 form
#include "requantize.h"

void b8_lookup(const uint8_t *x, uint8_t *y, const uint8_t *table, int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end; i++) y[i] = table[x[i]];
}

void q8_reduce_sum(const uint8_t *restrict x, uint8_t *restrict y, int32_t r, int32_t inner, int32_t x_zero,
                   int32_t x_flip, int32_t y_zero, int32_t y_flip, float scale, float lo, float hi, int32_t begin,
                   int32_t end) {
  const Stored stored = {lo, hi, y_zero, y_flip};
  for (int32_t i = begin; i < end; i++) {
    const uint8_t *p = x + i / inner * r * inner + i % inner;
    int32_t total = 0;
    for (int32_t k = 0; k < r; k++) total += p[k * inner] ^ x_flip;
    const v4i sums = v4i_splat(total - r * x_zero);
    y[i] = (uint8_t)(requantize(sums, v4f_splat(scale), &stored)[0] ^ y_flip);
  }
}

void q8_softmax(const uint8_t *restrict x, uint8_t *restrict y, const double *restrict table, int32_t r, int32_t inner,
                int32_t x_flip, int32_t y_zero, int32_t y_flip, float scale, float lo, float hi, int32_t begin,
                int32_t end) {
  for (int32_t i = begin; i < end; i++) {
    const int32_t first = i / inner * r * inner + i % inner;
    int32_t top = 0;
    double sum = 0.0;
    for (int32_t k = 0; k < r; k++) {
      const int32_t v = x[first + k * inner] ^ x_flip;
      top = v > top ? v : top;
    }
    for (int32_t k = 0; k < r; k++) sum += table[top - (x[first + k * inner] ^ x_flip)];
    for (int32_t k = 0; k < r; k++) {
      double v = __builtin_rint(table[top - (x[first + k * inner] ^ x_flip)] / sum / scale);
      v = v < lo ? lo : v > hi ? hi : v;
      y[first + k * inner] = (uint8_t)(((int32_t)v + y_zero) ^ y_flip);
    }
  }
}
