// Dot products of rounded activations with blocks of weights: one row by four rows of weights as they lie in the file,
// in two passes of bytes; and four rows by four that were opened and laid side by side, in 16 bits.
#pragma once

#include "blocks.h"
#include "dots.h"
#include "lanes.h"

enum { OPENED = 48 };  // blocks of 32 that are open at a time: 9 kB of the stack

// Sums of four products each, added to c. Weights of 8 bits are two parts, as one operand has 7.
INLINE v4i dot_halves(v16s x, v16u w, v4i c) {
  const v4i halves = v4i_dot4_i8_i7(x, (v16s)(w >> 1), v4i_splat(0));
  return v4i_dot4_i8_i7(x, (v16s)(w & 1), c) + (halves << 1);
}

INLINE v4f floats_of_halves(v4u h) {
  const v4f scaled = (v4f)((h & 0x7fff) << 13) * v4f_splat(0x1p112f);
  return (v4f)((v4u)scaled | ((h & 0x8000) << 16));
}

INLINE v4f v4f_lane(v4f a, int i) {
  return i == 0 ? __builtin_shufflevector(a, a, 0, 0, 0, 0)
         : i == 1 ? __builtin_shufflevector(a, a, 1, 1, 1, 1)
         : i == 2 ? __builtin_shufflevector(a, a, 2, 2, 2, 2)
                  : __builtin_shufflevector(a, a, 3, 3, 3, 3);
}

typedef uint32_t word_anywhere __attribute__((aligned(1), may_alias));
INLINE uint32_t word_at(const uint8_t *p) { return *(const word_anywhere *)p; }

#if SIMD
// The types that most files have: scales of four rows become floats together. `bytes_are` is what byte_dots says.
INLINE v4f dots_of_common(int32_t type, int32_t bytes_are, const uint8_t *const *rows, const int8_t *x,
                          const int8_t *rest, const float *scales, const float *sums, int32_t k) {
  const int32_t bytes = blocks_bytes(type), head = type == BLOCKS_Q4_1 ? 4 : 2;
  const uint8_t *w[4] = {rows[0], rows[1], rows[2], rows[3]};
  const v16u flip = bytes_are == BYTES_SIGNED ? (v16u){0} : (v16u){0} + 128;
  const float middle = type == BLOCKS_Q4_0 ? -8.0f : -(float)flip[0];
  v4f acc[4] = {v4f_splat(0.0f), v4f_splat(0.0f), v4f_splat(0.0f), v4f_splat(0.0f)}, offsets = v4f_splat(0.0f);
  NO_UNROLL for (int32_t at = 0; at < k / 32; at++, x += 32, rest += 32, scales++, sums += 2) {
    const v4u heads = {word_at(w[0]), word_at(w[1]), word_at(w[2]), word_at(w[3])};
    const v4f plain = floats_of_halves(heads & 0xffff), d = plain * v4f_load_splat(scales);
    const v16s low = v16s_load(x), high = v16s_load(x + 16), low_rest = v16s_load(rest), high_rest = v16s_load(rest + 16);
    UNROLL for (int32_t i = 0; i < 4; i++) {
      v4i dot = v4i_splat(0);
      if (type == BLOCKS_Q8_0) {
        const v16u a = v16u_load(w[i] + head) ^ flip, b = v16u_load(w[i] + head + 16) ^ flip;
        if (bytes_are == BYTES_INEXACT) {
          dot = dot_halves(high, b, dot_halves(low, a, dot)) << 7;
          dot = dot_halves(high_rest, b, dot_halves(low_rest, a, dot));
        } else {
          dot = v4i_dot4_i8(high, b, v4i_dot4_i8(low, a, dot)) << 7;
          dot = v4i_dot4_i8(high_rest, b, v4i_dot4_i8(low_rest, a, dot));
        }
      } else {
        const v16u q = v16u_load(w[i] + head);
        const v16u a = q & 15, b = (v16u)((v8u)q >> 4) & 15;  // engines have no instruction that shifts bytes
        dot = v4i_dot4_i8_i7(high, (v16s)b, v4i_dot4_i8_i7(low, (v16s)a, dot)) << 7;
        dot = v4i_dot4_i8_i7(high_rest, (v16s)b, v4i_dot4_i8_i7(low_rest, (v16s)a, dot));
      }
      acc[i] = v4f_madd(v4f_from_i32(dot), v4f_lane(d, i), acc[i]);
      w[i] += bytes;
    }
    if (type == BLOCKS_Q4_1) {
      offsets = v4f_madd(floats_of_halves(heads >> 16), v4f_splat(sums[0] + sums[1]), offsets);
    } else {
      offsets = v4f_madd(plain, v4f_splat(middle * (sums[0] + sums[1])), offsets);
    }
  }
  return offsets + (v4f){v4f_sum(acc[0]), v4f_sum(acc[1]), v4f_sum(acc[2]), v4f_sum(acc[3])};
}
#endif

// One row times four rows of weights.
SMALL_PART v4f dots_of_one(int32_t type, int32_t bytes_are, const uint8_t *const *rows, const int8_t *x,
                           const int8_t *rest, const float *scales, const float *sums, int32_t k) {
#if SIMD
  if (type == BLOCKS_Q4_0 || type == BLOCKS_Q4_1 || type == BLOCKS_Q8_0) {
    if (type != BLOCKS_Q8_0 || bytes_are == BYTES_INEXACT) {
      return dots_of_common(type, BYTES_INEXACT, rows, x, rest, scales, sums, k);
    }
    return dots_of_common(type, bytes_are, rows, x, rest, scales, sums, k);
  }
#endif
  v4f result = v4f_splat(0.0f);
#if !SIMD
  (void)bytes_are;
  for (int32_t i = 0; i < 4; i++) {
    float sum = 0.0f;
    for (int32_t at = 0; at < k / 32; at++) {
      Block b;
      blocks_open(type, rows[i], at, &b);
      for (int32_t half = 0; half < 2; half++) {
        int32_t dot = 0;
        for (int32_t j = 16 * half; j < 16 * half + 16; j++) dot += (x[32 * at + j] * 128 + rest[32 * at + j]) * b.q[j];
        sum += (float)dot * (b.d[half] * scales[at]) + b.m[half] * sums[2 * at + half];
      }
    }
    result[i] = sum;
  }
  return result;
#endif
  for (int32_t i = 0; i < 4; i++) {
    v4f acc = v4f_splat(0.0f);
    float offset = 0.0f;
    NO_UNROLL for (int32_t at = 0; at < k / 32; at++) {
      Block b;
      blocks_open(type, rows[i], at, &b);
      for (int32_t half = 0; half < 2; half++) {
        const int32_t from = 32 * at + 16 * half;
        const v16s w = (v16s)v16u_load(b.q + 16 * half);
        const v4i upper = v4i_dot4_i8_i7(v16s_load(x + from), w, v4i_splat(0)) << 7;
        const v4i dot = v4i_dot4_i8_i7(v16s_load(rest + from), w, upper);
        acc = v4f_madd(v4f_from_i32(dot), v4f_splat(b.d[half] * scales[at]), acc);
        offset += b.m[half] * sums[2 * at + half];
      }
    }
    result[i] = v4f_sum(acc) + offset;
  }
  return result;
}

#if SIMD
// 32 weights of four rows, in 16 bits: q[2j] has the weights 4j to 4j + 3 of rows 0 and 1, q[2j + 1] of rows 2 and 3.
typedef struct {
  v8s q[16];
  v4f d[2], m[2];
} Opened;

INLINE v8s halves_of(v8s a, v8s b, int upper) {
  return upper ? __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
               : __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
}

INLINE void open_panel(int32_t type, const uint8_t *const *rows, int32_t from, int32_t count, Opened *to) {
  for (int32_t at = 0; at < count; at++, to++) {
    Block b[4];
    UNROLL for (int32_t i = 0; i < 4; i++) blocks_open(type, rows[i], from + at, &b[i]);
    UNROLL for (int32_t j = 0; j < 4; j++) {
      v8s w[4];
      UNROLL for (int32_t i = 0; i < 4; i++) w[i] = __builtin_convertvector(v8ub_load(b[i].q + 8 * j), v8s);
      UNROLL for (int32_t i = 0; i < 4; i++) to->q[4 * j + i] = halves_of(w[i % 2 * 2], w[i % 2 * 2 + 1], i / 2);
    }
    UNROLL for (int32_t half = 0; half < 2; half++) {
      to->d[half] = (v4f){b[0].d[half], b[1].d[half], b[2].d[half], b[3].d[half]};
      to->m[half] = (v4f){b[0].m[half], b[1].m[half], b[2].m[half], b[3].m[half]};
    }
  }
}

// Four rows times a panel: acc[i] are the sums of row i. With `halves` each 16 weights have a scale of their own.
INLINE void dots_of_four(int halves, const Opened *w, const int16_t *const *x, const float *const *scales,
                         const float *const *sums, int32_t blocks, v4f acc[4]) {
  const int16_t *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
  v4f a0 = v4f_splat(0.0f), a1 = a0, a2 = a0, a3 = a0;
  NO_UNROLL for (int32_t at = 0; at < blocks; at++, w++) {
    UNROLL for (int32_t part = 0; part < (halves ? 2 : 1); part++) {
      v4i s0 = v4i_splat(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
      const v8s *q = w->q + 8 * part;
      UNROLL for (int32_t j = 0; j < (halves ? 4 : 8); j++) {
        PIN(q);
        const v8s upper = q[0], lower = q[1];
        q += 2;
#define ROW(I)                                                      \
  {                                                                 \
    PIN(x##I);                                                      \
    const v8s four = (v8s)wasm_v128_load64_splat(x##I);             \
    x##I += 4;                                                      \
    s##I += v4i_dot_i16(four, upper);                               \
    t##I += v4i_dot_i16(four, lower);                               \
  }
        ROW(0)
        ROW(1)
        ROW(2)
        ROW(3)
#undef ROW
      }
      const v4f d = w->d[part], m = w->m[part];
#define END(I)                                                                                       \
  s##I = __builtin_shufflevector(s##I, t##I, 0, 2, 4, 6) + __builtin_shufflevector(s##I, t##I, 1, 3, 5, 7); \
  a##I = v4f_madd(v4f_from_i32(s##I) * d, v4f_load_splat(scales[I] + at), a##I);                     \
  a##I = v4f_madd(m, v4f_splat(halves ? sums[I][2 * at + part] : sums[I][2 * at] + sums[I][2 * at + 1]), a##I)
      END(0);
      END(1);
      END(2);
      END(3);
#undef END
    }
  }
  acc[0] = a0, acc[1] = a1, acc[2] = a2, acc[3] = a3;
}
#endif
