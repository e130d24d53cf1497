// Quantised sums and softmax along one axis, and functions of one byte.
//
//   lookup           y[i] = table[x[i]]: every function of one 8-bit tensor. Units: elements.
//   piecewise_linear        the same where the table is a line below `pivot` and another one from there on: with d = x - pivot,
//                    y = clamp(round(d * 2^shift * (d < 0 ? low : high) / 32768) + zero, 0, 255), halves upwards.
//                    The table ends what is no whole vector. Units: elements.
//   reduce_sum       y = clamp(round(sum(x - x_zero) * scale), lo, hi) + y_zero, ties to even; a mean is a scaled sum.
//                    Units: lines, outer * inner.
//   softmax          table[d] = e^(beta * scale_x * -d) as float64 for a distance d below the largest element;
//                    y = clamp(round(table / sum / scale), lo, hi) + y_zero. Units: lines.
//
//   x  [outer, r, inner] bytes, read       y  [outer, inner], softmax [outer, r, inner], bytes, written; no overlap
//   flip  0x80 for int8, 0 for uint8; zero points belong to the uint8 form
//   Needs: y does not overlap x; a lookup may write over it.
#include "requantize.h"

void b8_lookup(const uint8_t *x, uint8_t *y, const uint8_t *table, int32_t begin, int32_t end) {
  int32_t i = begin;
  for (; i + 8 <= end; i += 8) {
    UNROLL for (int32_t k = 0; k < 8; k++) y[i + k] = table[x[i + k]];
  }
  for (; i < end; i++) y[i] = table[x[i]];
}

void b8_two_lines(const uint8_t *x, uint8_t *y, const uint8_t *table, int32_t pivot, int32_t shift, int32_t low,
                  int32_t high, int32_t zero, int32_t x_flip, int32_t y_flip, int32_t begin, int32_t end) {
  int32_t i = begin;
#if SIMD
  const v16u in = (v16u)v8s_splat((int16_t)(x_flip * 0x101)), out = (v16u)v8s_splat((int16_t)(y_flip * 0x101));
  const v8s start = v8s_splat((int16_t)pivot), to = v8s_splat((int16_t)zero);
  const v8s rising = v8s_splat((int16_t)high), bend = rising ^ v8s_splat((int16_t)low);
  for (; i + 16 <= end; i += 16) {
    const v16u bytes = v16u_load(x + i) ^ in;
    const v8s a = (v8s_widen_low_u(bytes) - start) << (int16_t)shift;
    const v8s b = (v8s_widen_high_u(bytes) - start) << (int16_t)shift;
    const v8s first = v8s_scaled(a, rising ^ ((a < 0) & bend)), second = v8s_scaled(b, rising ^ ((b < 0) & bend));
    v16u_store(y + i, v16u_narrow(first + to, second + to) ^ out);
  }
#else
  (void)pivot, (void)shift, (void)low, (void)high, (void)zero, (void)x_flip, (void)y_flip;
#endif
  b8_lookup(x, y, table, i, end);
}

// Up to eight neighbouring lines of r bytes, `inner` apart.
static void sum_columns(const uint8_t *x, uint8_t *y, int32_t r, int32_t inner, int32_t columns, int32_t x_zero,
                        int32_t x_flip, float scale, const Stored *stored) {
  v4i low = v4i_splat(-r * x_zero), high = low;
  NO_UNROLL for (int32_t k = 0; k < r; k++, x += inner) {
    const v8s shorts = load_shorts(x, x_flip);
    low += v4i_widen_low(shorts);
    high += v4i_widen_high(shorts);
  }
  low = requantize(low, v4f_splat(scale), stored);
  high = requantize(high, v4f_splat(scale), stored);
  store_bytes(y, stored_bytes(low, high, stored), columns);
}

// One row of r neighbouring bytes.
static void sum_row(const uint8_t *x, uint8_t *y, int32_t r, int32_t x_zero, int32_t x_flip, float scale,
                    const Stored *stored) {
  int32_t total = -r * x_zero;
  for (int32_t k = 0; k < r; k++) total += x[k] ^ x_flip;
  const v4i result = requantize(v4i_splat(total), v4f_splat(scale), stored);
  store_bytes(y, stored_bytes(result, result, stored), 1);
}

void q8_reduce_sum(const uint8_t *restrict x, uint8_t *restrict y, int32_t r, int32_t inner, int32_t x_zero,
                   int32_t x_flip, int32_t y_zero, int32_t y_flip, float scale, float lo, float hi, int32_t begin,
                   int32_t end) {
  Stored stored = stored_as(lo, hi, y_zero, y_flip);
  stored.rounding += v4f_splat((float)(y_zero & 1));  // ties go to even stored numbers, the zero point included
  stored.zero -= v4i_splat(y_zero & 1);
  for (int32_t i = begin, n; i < end; i += n) {
    const int32_t column = i % inner, rest = inner - column;
    n = rest < end - i ? rest : end - i;
    n = n < 8 ? n : 8;
    if (inner == 1) {
      sum_row(x + i * r, y + i, r, x_zero, x_flip, scale, &stored);
    } else {
      sum_columns(x + i / inner * r * inner + column, y + i, r, inner, n, x_zero, x_flip, scale, &stored);
    }
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
