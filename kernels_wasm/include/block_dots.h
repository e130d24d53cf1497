// Dot products of rounded activations with blocks of weights: one row by four rows of weights as they lie in the file, in
// two passes of bytes where the engine has exact ones, else in 16 bits.
#pragma once

#include "blocks.h"
#include "dots.h"
#include "lanes.h"

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
// Dot products of four rows' blocks with activations: in 16 bits, or with `bytes_are` that of byte_dots in two passes of
// bytes, which must be exact.
INLINE void dots_of_blocks(int32_t type, int32_t bytes_are, const uint8_t *const *w, const int8_t *x, const int8_t *rest,
                           v4i dots[4]) {
  v16s low, high, low_rest, high_rest;
  v8s halves[4];
  const v16u flip = bytes_are == BYTES_SIGNED ? (v16u){0} : (v16u){0} + 128;
  if (bytes_are == BYTES_INEXACT) {
    UNROLL for (int32_t i = 0; i < 4; i++) halves[i] = v8s_load(x + 16 * i);
  } else {
    low = v16s_load(x), high = v16s_load(x + 16), low_rest = v16s_load(rest), high_rest = v16s_load(rest + 16);
  }
  UNROLL for (int32_t i = 0; i < 4; i++) {
    v4i dot = v4i_splat(0);
    if (type == BLOCKS_Q8_0 && bytes_are == BYTES_INEXACT) {
      UNROLL for (int32_t j = 0; j < 4; j++) {
        dot += v4i_dot_i16(halves[j], (v8s)wasm_i16x8_load8x8(w[i] + 8 * j));
      }
    } else if (type == BLOCKS_Q8_0) {
      const v16u a = v16u_load(w[i]) ^ flip, b = v16u_load(w[i] + 16) ^ flip;
      dot = v4i_dot4_i8(high, b, v4i_dot4_i8(low, a, dot)) << 7;
      dot = v4i_dot4_i8(high_rest, b, v4i_dot4_i8(low_rest, a, dot));
    } else {
      const v16u q = v16u_load(w[i]);
      const v16u a = q & 15, b = (v16u)((v8u)q >> 4) & 15;  // engines have no instruction that shifts bytes
      if (bytes_are == BYTES_INEXACT) {
        dot = v4i_dot_i16(halves[0], (v8s)wasm_u16x8_extend_low_u8x16((v128_t)a));
        dot += v4i_dot_i16(halves[1], (v8s)wasm_u16x8_extend_high_u8x16((v128_t)a));
        dot += v4i_dot_i16(halves[2], (v8s)wasm_u16x8_extend_low_u8x16((v128_t)b));
        dot += v4i_dot_i16(halves[3], (v8s)wasm_u16x8_extend_high_u8x16((v128_t)b));
      } else {
        dot = v4i_dot4_i8_i7(high, (v16s)b, v4i_dot4_i8_i7(low, (v16s)a, dot)) << 7;
        dot = v4i_dot4_i8_i7(high_rest, (v16s)b, v4i_dot4_i8_i7(low_rest, (v16s)a, dot));
      }
    }
    dots[i] = dot;
    PIN(dots[i]);
  }
}

// The types that most files have: scales of four rows become floats together.
INLINE v4f dots_of_common(int32_t type, int32_t bytes_are, const uint8_t *const *rows, const int8_t *x,
                          const int8_t *rest, const float *scales, const float *sums, int32_t k) {
  const int32_t bytes = blocks_bytes(type), head = type == BLOCKS_Q4_1 ? 4 : 2, step = bytes_are == BYTES_INEXACT ? 64 : 32;
  const uint8_t *w[4] = {rows[0], rows[1], rows[2], rows[3]};
  const float middle = type == BLOCKS_Q4_0 ? -8.0f : bytes_are == BYTES_UNSIGNED ? -128.0f : 0.0f;
  v4f acc[4] = {v4f_splat(0.0f), v4f_splat(0.0f), v4f_splat(0.0f), v4f_splat(0.0f)}, offsets = v4f_splat(0.0f);
  NO_UNROLL for (int32_t at = 0; at < k / 32; at++, x += step, rest += 32, scales++, sums += 2) {
    const v4u heads = {word_at(w[0]), word_at(w[1]), word_at(w[2]), word_at(w[3])};
    const v4f plain = floats_of_halves(heads & 0xffff), d = plain * v4f_load_splat(scales);
    const uint8_t *from[4] = {w[0] + head, w[1] + head, w[2] + head, w[3] + head};
    v4i dots[4];
    dots_of_blocks(type, bytes_are, from, x, rest, dots);
    UNROLL for (int32_t i = 0; i < 4; i++) {
      acc[i] = v4f_madd(v4f_from_i32(dots[i]), v4f_lane(d, i), acc[i]);
      w[i] += bytes;
    }
    if (type == BLOCKS_Q4_1) {
      offsets = v4f_madd(floats_of_halves(heads >> 16), v4f_splat(sums[0] + sums[1]), offsets);
    } else if (type != BLOCKS_Q8_0 || middle != 0.0f) {
      offsets = v4f_madd(plain, v4f_splat(middle * (sums[0] + sums[1])), offsets);
    }
  }
  return offsets + (v4f){v4f_sum(acc[0]), v4f_sum(acc[1]), v4f_sum(acc[2]), v4f_sum(acc[3])};
}

// 16 weights of a block that was opened.
INLINE v4i dots_of_half(int32_t bytes_are, const uint8_t *q, const int8_t *x, const int8_t *rest) {
  const v16s w = (v16s)v16u_load(q);
  if (bytes_are != BYTES_INEXACT) return v4i_dot4_i8_i7(v16s_load(rest), w, v4i_dot4_i8_i7(v16s_load(x), w, v4i_splat(0)) << 7);
  return v4i_dot_i16(v8s_load(x), (v8s)wasm_u16x8_extend_low_u8x16((v128_t)w)) +
         v4i_dot_i16(v8s_load(x + 16), (v8s)wasm_u16x8_extend_high_u8x16((v128_t)w));
}

INLINE v4f dots_of_opened(int32_t type, int32_t bytes_are, const uint8_t *const *rows, const int8_t *x, const int8_t *rest,
                          const float *scales, const float *sums, int32_t k) {
  v4f result = v4f_splat(0.0f);
  for (int32_t i = 0; i < 4; i++) {
    v4f acc = v4f_splat(0.0f);
    float offset = 0.0f;
    NO_UNROLL for (int32_t at = 0; at < k / 32; at++) {
      Block b;
      blocks_open(type, rows[i], at, &b);
      for (int32_t half = 0; half < 2; half++) {
        const int32_t from = 32 * at + 16 * half;
        const v4i dot = dots_of_half(bytes_are, b.q + 16 * half, x + (bytes_are == BYTES_INEXACT ? 2 : 1) * from, rest + from);
        acc = v4f_madd(v4f_from_i32(dot), v4f_splat(b.d[half] * scales[at]), acc);
        offset += b.m[half] * sums[2 * at + half];
      }
    }
    result[i] = v4f_sum(acc) + offset;
  }
  return result;
}
#endif

// One row times four rows of weights; `bytes_are` is what byte_dots says.
SMALL_PART v4f dots_of_one(int32_t type, int32_t bytes_are, const uint8_t *const *rows, const int8_t *x,
                           const int8_t *rest, const float *scales, const float *sums, int32_t k) {
#if SIMD
  if (type == BLOCKS_Q4_0 || type == BLOCKS_Q4_1 || type == BLOCKS_Q8_0) {
    return dots_of_common(type, bytes_are, rows, x, rest, scales, sums, k);
  }
  return dots_of_opened(type, bytes_are, rows, x, rest, scales, sums, k);
#else
  v4f result = v4f_splat(0.0f);
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
}
