// The vectors themselves: their types, loads and stores, splats, and what clang must be told. simd.h has what one does
// with them, and is what kernels include.
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

// Cranelift, which compiles kernels for CPython, gathers all loads of a loop's body before its arithmetic, whatever the
// pins say, and takes a load that is splatted for several products through a general register. There bodies have few
// loads, each of several values, and lanes are splatted instead (docs: README, "Two schedules").
#ifndef GATHERS
#define GATHERS 0
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
#undef LOAD_STORE

// Two floats in the low half of a vector.
INLINE v4f v4f_load_half(const float *p) {
#if SIMD
  return (v4f)wasm_v128_load64_zero(p);
#else
  return (v4f){p[0], p[1], 0.0f, 0.0f};
#endif
}
// One lane, whose number is a constant, in all four.
#define splat_lane(a, lane) __builtin_shufflevector(a, a, lane, lane, lane, lane)

// Eight bytes in the low half of a vector.
INLINE v16u v16u_load_half(const void *p) {
  const v8ub half = v8ub_load(p);
  return __builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1);
}

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
