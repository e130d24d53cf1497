// Quantised sums and products of two 8-bit tensors that broadcast together.
//
//   q8_add  y = clamp((p*(a - a_zero) + q*(b - b_zero) + half) >> shift, lo, hi) + y_zero, half = 2^(shift-1)
//   q8_mul  y = clamp(round((a - a_zero) * (b - b_zero) * scale), lo, hi) + y_zero, ties to even
//
//   a, b  bytes  read, up to 7 bytes past an end       y  bytes, dense  written
//   nest  int32  the loop nest of include/walk.h over a and b; inner strides are 0 or 1
//   flip         0x80 if all three are int8, 0 if uint8; zero points belong to the uint8 form
//
// A difference (sub) has a negative q. Needs: y overlaps neither operand.
// Units: elements of y.
#include "requantize.h"
#include "walk.h"

// Eight of a row's operand; a stride of 0 repeats its one element.
INLINE v8s operand(const uint8_t *p, int32_t step, int32_t at, int32_t flip, int32_t zero) {
  const v8s shorts = step ? load_shorts(p + at, flip) : (v8s){} + (int16_t)(uint8_t)(*p ^ flip);
  return shorts - (int16_t)zero;
}

typedef struct {
  int32_t p, q, shift;
  v4i lo, hi, zero;  // as integers
  float scale;
} Factors;

INLINE v4i sum_of(v4i a, v4i b, const Factors *f, const Stored *s) {
  const v4i nearest = (a * f->p + b * f->q + (1 << (f->shift - 1))) >> f->shift;
  (void)s;
  return v4i_clamp(nearest, f->lo, f->hi) + f->zero;
}
INLINE v4i product_of(v4i a, v4i b, const Factors *f, const Stored *s) {
  return requantize(a * b, v4f_splat(f->scale), s);
}

#define ROWS(COMBINE)                                                                             \
  Walk w;                                                                                         \
  walk_start(&w, nest, 2, begin);                                                                 \
  const int32_t a_step = walk_step(&w, 0), b_step = walk_step(&w, 1);                             \
  for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {                                \
    n = walk_count(&w, i, end);                                                                   \
    const uint8_t *ap = a + w.offset[0], *bp = b + w.offset[1];                                   \
    for (int32_t j = 0; j < n; j += 8) {                                                          \
      const v8s p = operand(ap, a_step, j, flip, a_zero), q = operand(bp, b_step, j, flip, b_zero); \
      const v4i low = COMBINE(v4i_widen_low(p), v4i_widen_low(q), &factors, &stored);             \
      const v4i high = COMBINE(v4i_widen_high(p), v4i_widen_high(q), &factors, &stored);          \
      store_bytes(y + i + j, stored_bytes(low, high, &stored), n - j);                            \
    }                                                                                             \
  }

void q8_add(const uint8_t *a, const uint8_t *b, uint8_t *y, const int32_t *nest, int32_t a_zero, int32_t b_zero,
            int32_t y_zero, int32_t flip, int32_t p, int32_t q, int32_t shift, float lo, float hi, int32_t begin,
            int32_t end) {
  const Stored stored = stored_as(lo, hi, y_zero, flip);
  const Factors factors = {p, q, shift, v4i_splat((int32_t)lo), v4i_splat((int32_t)hi), v4i_splat(y_zero), 0.0f};
  ROWS(sum_of)
}

void q8_mul(const uint8_t *a, const uint8_t *b, uint8_t *y, const int32_t *nest, int32_t a_zero, int32_t b_zero,
            int32_t y_zero, int32_t flip, float scale, float lo, float hi, int32_t begin, int32_t end) {
  const Stored stored = stored_as(lo, hi, y_zero, flip);
  const Factors factors = {.scale = scale};
  ROWS(product_of)
}
