// The vector vocabulary: one source, three builds.
//
//   scalar    no flag          clang's vector extensions, legalised to plain code: the twin that tests compare with
//   simd128   -msimd128        fixed-width SIMD
//   relaxed   -mrelaxed-simd   the same with fused multiply-add and integer dot products
//
// Vectors are plain C values: + - * / < and [] work on them in all three builds. What C has no
// operator for stands here. Loads and stores need no alignment. Add words here, never in a kernel.
#pragma once

#include <stdint.h>

#include "constants.h"

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#define SIMD 1
#else
#define SIMD 0
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

// Pins a value in a register here: clang may neither move its computation past this point nor rewrite a
// pointer into base plus index. Inner loops need it, or their loads gather at the top and V8 runs out of registers.
#if SIMD
#define PIN(x) __asm__ volatile("" : "+r"(x))
#else
#define PIN(x) (void)(x)
#endif

// Has bytes from p on brought near that are needed soon: a load whose value nobody needs. Loads that follow each other
// are fetched ahead by the processor, those of loops with longer strides are waited for.
#define LINE_BYTES 64
INLINE void touch(const void *p, int32_t bytes) {
#if SIMD
  NO_UNROLL for (int32_t at = 0; at < bytes; at += LINE_BYTES) {
    int32_t word = *(const int32_t *)((const char *)p + at);
    PIN(word);
  }
#else
  (void)p, (void)bytes;
#endif
}

typedef float v4f __attribute__((vector_size(16)));
_Static_assert(sizeof(v4f) == 4 * VECTOR_LANES, "units count blocks of VECTOR_LANES");
typedef int32_t v4i __attribute__((vector_size(16)));
typedef uint32_t v4u __attribute__((vector_size(16)));
typedef int16_t v8s __attribute__((vector_size(16)));
typedef uint16_t v8u __attribute__((vector_size(16)));
typedef int8_t v16s __attribute__((vector_size(16)));
typedef uint8_t v16u __attribute__((vector_size(16)));
typedef int8_t v8b __attribute__((vector_size(8)));    // only between a load and a widening
typedef uint8_t v8ub __attribute__((vector_size(8)));
typedef int16_t v4s __attribute__((vector_size(8)));
typedef uint16_t v4us __attribute__((vector_size(8)));

// ---- loads and stores: v4f v4f_load(const void*), void v4f_store(void*, v4f), the same for every type
#define LOAD_STORE(T)                                                                 \
  typedef T T##_anywhere __attribute__((aligned(1), may_alias));                      \
  INLINE T T##_load(const void *p) { return *(const T##_anywhere *)p; }               \
  INLINE void T##_store(void *p, T a) { *(T##_anywhere *)p = a; }
LOAD_STORE(v4f)
LOAD_STORE(v4i)
LOAD_STORE(v4u)
LOAD_STORE(v8s)
LOAD_STORE(v8u)
LOAD_STORE(v16s)
LOAD_STORE(v16u)
LOAD_STORE(v8b)
LOAD_STORE(v8ub)
LOAD_STORE(v4s)
LOAD_STORE(v4us)
#undef LOAD_STORE

// ---- splats
INLINE v4f v4f_splat(float a) { return (v4f){a, a, a, a}; }
INLINE v4i v4i_splat(int32_t a) { return (v4i){a, a, a, a}; }
INLINE v8s v8s_splat(int16_t a) { return (v8s){a, a, a, a, a, a, a, a}; }
INLINE v4f v4f_load_splat(const float *p) {
#if SIMD
  return (v4f)wasm_v128_load32_splat(p);
#else
  return v4f_splat(*p);
#endif
}

// Stores one lane, whose number is a constant.
#if SIMD
#define v4i_store_lane(p, a, lane) wasm_v128_store32_lane(p, (v128_t)(a), lane)
#else
#define v4i_store_lane(p, a, lane) __builtin_memcpy(p, (const int32_t[1]){(a)[lane]}, 4)
#endif

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
INLINE v4f v4f_from_u32(v4u a) { return __builtin_convertvector(a, v4f); }
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

// ---- widening: 8 bytes to 8 shorts, 4 shorts to 4 ints, halves of a full vector
INLINE v8s v8s_widen(v8b a) { return __builtin_convertvector(a, v8s); }
INLINE v8s v8s_widen_u(v8ub a) { return __builtin_convertvector(a, v8s); }
INLINE v4i v4i_widen(v4s a) { return __builtin_convertvector(a, v4i); }
INLINE v4i v4i_widen_u(v4us a) { return __builtin_convertvector(a, v4i); }
INLINE v4i v4i_widen_low(v8s a) { return v4i_widen(__builtin_shufflevector(a, a, 0, 1, 2, 3)); }
INLINE v4i v4i_widen_high(v8s a) { return v4i_widen(__builtin_shufflevector(a, a, 4, 5, 6, 7)); }
INLINE v8s v8s_widen_low(v16s a) { return v8s_widen(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)); }
INLINE v8s v8s_widen_high(v16s a) { return v8s_widen(__builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); }
INLINE v8s v8s_widen_low_u(v16u a) { return v8s_widen_u(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)); }
INLINE v8s v8s_widen_high_u(v16u a) { return v8s_widen_u(__builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); }

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
