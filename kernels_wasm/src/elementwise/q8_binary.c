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
#include "dots.h"
#include "requantize.h"
#include "walk.h"

// Eight of a row's operand, of the uint8 form; a stride of 0 repeats its one element.
INLINE v8s operand(const uint8_t *p, int32_t step, int32_t at, int32_t flip) {
  return step ? load_shorts(p + at, flip) : (v8s){} + (int16_t)(uint8_t)(*p ^ flip);
}

// What both kernels know of a call.
typedef struct {
  v8s high, low;  // of q8_add, for each pair of operands: factors without their last LOW bits, and these
  v4i start;      // what its sums start from
  int32_t shift;
  v8s lo, hi, zero;
  v8s a_zero, b_zero;  // of q8_mul
  v4f scale;
  Stored stored;
} Factors;

enum { LOW = 11 };  // a factor has 21 bits and a sign, and a dot product takes int16

INLINE v4i shifted_sums(v8s pairs, const Factors *f) {
  return ((v4i_dot_i16(pairs, f->high) << LOW) + v4i_dot_i16(pairs, f->low) + f->start) >> f->shift;
}
INLINE v16u sum_of(v8s a, v8s b, const Factors *f) {
  const v4i low = shifted_sums(v8s_pairs_low(a, b), f);
  const v4i high = shifted_sums(v8s_pairs_high(a, b), f);
  const v8s shorts = v8s_clamp(v8s_narrow(low, high), f->lo, f->hi) + f->zero;
  return v16u_narrow(shorts, shorts) ^ f->stored.flip;
}
INLINE v16u product_of(v8s a, v8s b, const Factors *f) {
  const v8s p = a - f->a_zero, q = b - f->b_zero;
  const v4i low = requantize(v4i_widen_low(p) * v4i_widen_low(q), f->scale, &f->stored);
  const v4i high = requantize(v4i_widen_high(p) * v4i_widen_high(q), f->scale, &f->stored);
  return stored_bytes(low, high, &f->stored);
}

#define ROWS(COMBINE)                                                                             \
  Walk w;                                                                                         \
  walk_start(&w, nest, 2, begin);                                                                 \
  const int32_t a_step = walk_step(&w, 0), b_step = walk_step(&w, 1);                             \
  for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {                                \
    n = walk_count(&w, i, end);                                                                   \
    const uint8_t *ap = a + w.offset[0], *bp = b + w.offset[1];                                   \
    for (int32_t j = 0; j < n; j += 8) {                                                          \
      const v8s p = operand(ap, a_step, j, flip), q = operand(bp, b_step, j, flip);               \
      store_bytes(y + i + j, COMBINE(p, q, &factors), n - j);                                     \
    }                                                                                             \
  }

// Two factors, of the even and the odd lanes.
INLINE v8s in_turns(int32_t even, int32_t odd) {
  const int16_t a = (int16_t)even, b = (int16_t)odd;
  return (v8s){a, b, a, b, a, b, a, b};
}

void q8_add(const uint8_t *a, const uint8_t *b, uint8_t *y, const int32_t *nest, int32_t a_zero, int32_t b_zero,
            int32_t y_zero, int32_t flip, int32_t p, int32_t q, int32_t shift, float lo, float hi, int32_t begin,
            int32_t end) {
  const int32_t below = (1 << LOW) - 1;
  const Factors factors = {
      .high = in_turns(p >> LOW, q >> LOW),
      .low = in_turns(p & below, q & below),
      .start = v4i_splat((1 << (shift - 1)) - p * a_zero - q * b_zero),
      .shift = shift,
      .lo = v8s_splat((int16_t)lo),
      .hi = v8s_splat((int16_t)hi),
      .zero = v8s_splat((int16_t)y_zero),
      .stored = stored_as(lo, hi, y_zero, flip),
  };
  ROWS(sum_of)
}

void q8_mul(const uint8_t *a, const uint8_t *b, uint8_t *y, const int32_t *nest, int32_t a_zero, int32_t b_zero,
            int32_t y_zero, int32_t flip, float scale, float lo, float hi, int32_t begin, int32_t end) {
  const Factors factors = {
      .a_zero = v8s_splat((int16_t)a_zero),
      .b_zero = v8s_splat((int16_t)b_zero),
      .scale = v4f_splat(scale),
      .stored = stored_as(lo, hi, y_zero, flip),
  };
  ROWS(product_of)
}
