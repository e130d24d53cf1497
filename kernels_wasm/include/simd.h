// The vector vocabulary: one source, three builds.
//
//   scalar    no flag          clang's vector extensions, legalised to plain code: the version that tests compare with
//   simd128   -msimd128        fixed-width SIMD
//   relaxed   -mrelaxed-simd   the same with fused multiply-add and integer dot products
//
// Vectors are plain C values: + - * / < and [] work on them in all three builds. What C has no
// operator for stands here. Loads and stores need no alignment. Add words here, never in a kernel.
#pragma once

#include "vectors.h"

// ---- lane-wise choice. A mask is what a comparison gives: all ones or all zeros a lane.
INLINE v4f v4f_select(v4i mask, v4f yes, v4f no) {
#if SIMD
  return (v4f)wasm_v128_bitselect((v128_t)yes, (v128_t)no, (v128_t)mask);
#else
  return (v4f)(((v4i)yes & mask) | ((v4i)no & ~mask));
#endif
}
INLINE v4i v4i_select(v4i mask, v4i yes, v4i no) { return (v4i)v4f_select(mask, (v4f)yes, (v4f)no); }

// max(x, bound) = x < bound ? bound : x. A NaN in `x` stays a NaN: pass the data first, the bound second.
INLINE v4f v4f_max(v4f x, v4f bound) {
#if SIMD
  return (v4f)wasm_f32x4_pmax((v128_t)x, (v128_t)bound);
#else
  return v4f_select(x < bound, bound, x);
#endif
}
// min(x, bound) = bound < x ? bound : x. NaN as in v4f_max.
INLINE v4f v4f_min(v4f x, v4f bound) {
#if SIMD
  return (v4f)wasm_f32x4_pmin((v128_t)x, (v128_t)bound);
#else
  return v4f_select(bound < x, bound, x);
#endif
}
INLINE v4f v4f_clamp(v4f x, v4f lo, v4f hi) { return v4f_min(v4f_max(x, lo), hi); }

// a*b + c: two roundings in scalar and simd128, in relaxed one or two as the machine has it.
INLINE v4f v4f_madd(v4f a, v4f b, v4f c) {
#if defined(__wasm_relaxed_simd__)
  return (v4f)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
#else
  return a * b + c;
#endif
}

// sums[j] += s[0] * first[j], then s[1] * second[j], of `count` vectors.
INLINE void v4f_madd_two(v4f *sums, v4f s, const v4f *first, const v4f *second, const int count) {
  UNROLL for (int j = 0; j < count; j++) {
    sums[j] = v4f_madd(splat_lane(s, 0), first[j], sums[j]);
    sums[j] = v4f_madd(splat_lane(s, 1), second[j], sums[j]);
  }
}

// ---- float functions, one word each where wasm has an instruction
#if SIMD
#define UNARY(NAME, INSTRUCTION, BUILTIN) \
  INLINE v4f NAME(v4f a) { return (v4f)INSTRUCTION((v128_t)a); }
#else
#define UNARY(NAME, INSTRUCTION, BUILTIN) \
  INLINE v4f NAME(v4f a) { return (v4f){BUILTIN(a[0]), BUILTIN(a[1]), BUILTIN(a[2]), BUILTIN(a[3])}; }
#endif
UNARY(v4f_abs, wasm_f32x4_abs, __builtin_fabsf)
UNARY(v4f_sqrt, wasm_f32x4_sqrt, __builtin_sqrtf)
UNARY(v4f_ceil, wasm_f32x4_ceil, __builtin_ceilf)
UNARY(v4f_floor, wasm_f32x4_floor, __builtin_floorf)
UNARY(v4f_trunc, wasm_f32x4_trunc, __builtin_truncf)
UNARY(v4f_round_even, wasm_f32x4_nearest, __builtin_rintf)
#undef UNARY

// ---- conversions. To integers: rounds towards zero and saturates; NaN gives 0.
INLINE v4f v4f_from_i32(v4i a) { return __builtin_convertvector(a, v4f); }
INLINE int32_t i32_from_f32(float a) {
  if (a != a) return 0;
  return a >= 2147483648.0f ? INT32_MAX : a < -2147483648.0f ? INT32_MIN : (int32_t)a;
}
INLINE v4i v4i_from_f32(v4f a) {
#if SIMD
  return (v4i)wasm_i32x4_trunc_sat_f32x4((v128_t)a);
#else
  return (v4i){i32_from_f32(a[0]), i32_from_f32(a[1]), i32_from_f32(a[2]), i32_from_f32(a[3])};
#endif
}

// ---- the bytes of a that b numbers. Needs: numbers are 0..15, or at least 128 for a byte of 0
#if SIMD
INLINE v16u v16u_swizzle(v16u a, v16u b) {
#if defined(__wasm_relaxed_simd__)
  return (v16u)wasm_i8x16_relaxed_swizzle((v128_t)a, (v128_t)b);
#else
  return (v16u)wasm_i8x16_swizzle((v128_t)a, (v128_t)b);
#endif
}
#endif

// ---- round(a * b / 32768), halves upwards. Needs: a or b is above -32768
#if SIMD
INLINE v8s v8s_scaled(v8s a, v8s b) {
#if defined(__wasm_relaxed_simd__)
  return (v8s)wasm_i16x8_relaxed_q15mulr((v128_t)a, (v128_t)b);
#else
  return (v8s)wasm_i16x8_q15mulr_sat((v128_t)a, (v128_t)b);
#endif
}
#endif

// ---- sums and maxima across lanes
INLINE float v4f_sum(v4f a) { return (a[0] + a[1]) + (a[2] + a[3]); }
INLINE int32_t v4i_sum(v4i a) { return (a[0] + a[1]) + (a[2] + a[3]); }
INLINE int32_t v4i_any(v4i a) { return ((a[0] | a[1]) | (a[2] | a[3])) != 0; }
INLINE v4i v4i_max(v4i a, v4i b) { return v4i_select(a > b, a, b); }
INLINE v4i v4i_min(v4i a, v4i b) { return v4i_select(a < b, a, b); }
INLINE v4i v4i_clamp(v4i a, v4i lo, v4i hi) { return v4i_min(v4i_max(a, lo), hi); }

INLINE v8s v8s_clamp(v8s a, v8s lo, v8s hi) {
#if SIMD
  return (v8s)wasm_i16x8_min(wasm_i16x8_max((v128_t)a, (v128_t)lo), (v128_t)hi);
#else
  for (int i = 0; i < 8; i++) a[i] = a[i] < lo[i] ? lo[i] : a[i] > hi[i] ? hi[i] : a[i];
  return a;
#endif
}

// ---- widening: 8 bytes to 8 shorts, 4 shorts to 4 ints, halves of a full vector
INLINE v8s v8s_widen(v8b a) { return __builtin_convertvector(a, v8s); }
INLINE v8s v8s_widen_u(v8ub a) { return __builtin_convertvector(a, v8s); }
INLINE v4i v4i_widen(v4s a) { return __builtin_convertvector(a, v4i); }
INLINE v4i v4i_widen_low(v8s a) { return v4i_widen(__builtin_shufflevector(a, a, 0, 1, 2, 3)); }
INLINE v4i v4i_widen_high(v8s a) { return v4i_widen(__builtin_shufflevector(a, a, 4, 5, 6, 7)); }
INLINE v8s v8s_widen_low_u(v16u a) { return v8s_widen_u(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)); }
INLINE v8s v8s_widen_high_u(v16u a) { return v8s_widen_u(__builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); }

// ---- the lanes of two vectors in turns, as pairs for v4i_dot_i16: those of their low halves, those of their high halves
INLINE v8s v8s_pairs_low(v8s a, v8s b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
INLINE v8s v8s_pairs_high(v8s a, v8s b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

// ---- narrowing with saturation: low lanes from a, high lanes from b
INLINE int32_t i32_clamp(int32_t a, int32_t lo, int32_t hi) { return a < lo ? lo : a > hi ? hi : a; }
INLINE v8s v8s_narrow(v4i a, v4i b) {
#if SIMD
  return (v8s)wasm_i16x8_narrow_i32x4((v128_t)a, (v128_t)b);
#else
  v8s r;
  for (int i = 0; i < 4; i++) {
    r[i] = (int16_t)i32_clamp(a[i], -32768, 32767);
    r[i + 4] = (int16_t)i32_clamp(b[i], -32768, 32767);
  }
  return r;
#endif
}
INLINE v16s v16s_narrow(v8s a, v8s b) {
#if SIMD
  return (v16s)wasm_i8x16_narrow_i16x8((v128_t)a, (v128_t)b);
#else
  v16s r;
  for (int i = 0; i < 8; i++) {
    r[i] = (int8_t)i32_clamp(a[i], -128, 127);
    r[i + 8] = (int8_t)i32_clamp(b[i], -128, 127);
  }
  return r;
#endif
}
INLINE v16u v16u_narrow(v8s a, v8s b) {
#if SIMD
  return (v16u)wasm_u8x16_narrow_i16x8((v128_t)a, (v128_t)b);
#else
  v16u r;
  for (int i = 0; i < 8; i++) {
    r[i] = (uint8_t)i32_clamp(a[i], 0, 255);
    r[i + 8] = (uint8_t)i32_clamp(b[i], 0, 255);
  }
  return r;
#endif
}

// ---- tails: the first `count` (1 to 3) lanes only
INLINE void v4f_store_first(float *p, v4f a, int32_t count) {
  p[0] = a[0];
  if (count > 1) p[1] = a[1];
  if (count > 2) p[2] = a[2];
}
INLINE v4f v4f_load_first(const float *p, int32_t count) {
  v4f a = {p[0], 0.0f, 0.0f, 0.0f};
  if (count > 1) a[1] = p[1];
  if (count > 2) a[2] = p[2];
  return a;
}
