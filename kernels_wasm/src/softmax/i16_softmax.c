// Softmax of rows of 16-bit integers, in integers: exponentials and a reciprocal from tables of straight lines.
//
//   x            [rows, r] int16          read
//   y            [rows, r] int16          written, 32768 stands for 1; exponentials first
//   exponentials, reciprocals  [513] int32: ends of lines over -32768..32767     read
//   factor, shift  multiplier of 31 bits and left shift (negative: right) of a distance from the row's greatest
// Needs: y overlaps nothing.
//
// Units: rows.
// Source: tensorflow v2.18.0, lite/kernels/internal/reference/softmax.h, SoftmaxInt16; agrees with
// backends/reference/short_softmax.py
#include "simd.h"

static int32_t on_line(const int32_t *table, int32_t value) {
  const int32_t i = 256 + (value >> 7);
  return table[i] + (((table[i + 1] - table[i]) * (value & 127) + 64) >> 7);
}

static int32_t scaled(int32_t distance, int32_t factor, int32_t shift) {
  const int64_t wide = (int64_t)distance * ((int64_t)1 << (shift > 0 ? shift : 0)) * factor;
  // Doubled, rounded to the high word with ties away from zero, then shifted the same way.
  const int64_t nudged = wide + (wide >= 0 ? 1 << 30 : 1 - (1 << 30));
  const int64_t high = nudged / ((int64_t)1 << 31);
  const int32_t value = high < INT32_MIN ? INT32_MIN : (int32_t)high;
  if (shift >= 0) return value;
  const int32_t mask = (int32_t)(((int64_t)1 << -shift) - 1), rest = value & mask;
  return (value >> -shift) + (rest > (mask >> 1) + (value < 0));
}

void i16_softmax(const int16_t *restrict x, int16_t *restrict y, const int32_t *restrict exponentials,
                 const int32_t *restrict reciprocals, int32_t r, int32_t factor, int32_t shift, int32_t begin,
                 int32_t end) {
  for (int32_t row = begin; row < end; row++) {
    const int16_t *from = x + row * r;
    int16_t *to = y + row * r;
    int32_t top = INT16_MIN, sum = 0;
    for (int32_t k = 0; k < r; k++) top = from[k] > top ? from[k] : top;
    for (int32_t k = 0; k < r; k++) {
      const int32_t place = i32_clamp(scaled(from[k] - top, factor, shift), -65535, 0) + 32767;
      to[k] = (int16_t)on_line(exponentials, place);
      sum += to[k];
    }
    const int32_t headroom = __builtin_clz((uint32_t)sum);
    const int32_t rest = (int32_t)((((int64_t)sum << (headroom - 1)) + (1 << 13)) >> 14) - (1 << 15) - (1 << 16);
    const int64_t reciprocal = on_line(reciprocals, i32_clamp(rest, INT16_MIN, INT16_MAX));
    const int32_t last = 31 - headroom;
    for (int32_t k = 0; k < r; k++) {
      const int64_t value = (to[k] * reciprocal + ((int64_t)1 << (last - 1))) >> last;
      to[k] = (int16_t)(value < 0 ? 0 : value > INT16_MAX ? INT16_MAX : value);
    }
  }
}
