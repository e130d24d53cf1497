// Integer dot products, of shorts and of bytes.
#pragma once

#include "simd.h"

// [a0*b0 + a1*b1, a2*b2 + a3*b3, ...] in 32 bits
INLINE v4i v4i_dot_i16(v8s a, v8s b) {
#if SIMD
  return (v4i)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b);
#else
  v4i r;
  for (int i = 0; i < 4; i++) r[i] = (int32_t)a[2 * i] * b[2 * i] + (int32_t)a[2 * i + 1] * b[2 * i + 1];
  return r;
#endif
}
// c[i] + the four products of bytes 4i..4i+3. Needs 0 <= b <= 127, the relaxed instruction's common range.
INLINE v4i v4i_dot4_i8_i7(v16s a, v16s b, v4i c) {
#if defined(__wasm_relaxed_simd__)
  return (v4i)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)a, (v128_t)b, (v128_t)c);
#elif SIMD
  const v8s low = (v8s)wasm_i16x8_extmul_low_i8x16((v128_t)a, (v128_t)b);
  const v8s high = (v8s)wasm_i16x8_extmul_high_i8x16((v128_t)a, (v128_t)b);
  const v4i pairs_low = (v4i)wasm_i32x4_extadd_pairwise_i16x8((v128_t)low);
  const v4i pairs_high = (v4i)wasm_i32x4_extadd_pairwise_i16x8((v128_t)high);
  return c + __builtin_shufflevector(pairs_low, pairs_high, 0, 2, 4, 6) +
         __builtin_shufflevector(pairs_low, pairs_high, 1, 3, 5, 7);
#else
  for (int i = 0; i < 16; i++) c[i / 4] += (int32_t)a[i] * b[i];
  return c;
#endif
}

// c[i] + the four products of bytes 4i..4i+3, b taken as `byte_dots` says: exact where it is not BYTES_INEXACT.
INLINE v4i v4i_dot4_i8(v16s a, v16u b, v4i c) {
#if defined(__wasm_relaxed_simd__)
  return (v4i)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)a, (v128_t)b, (v128_t)c);
#elif SIMD
  return (void)a, (void)b, c;  // nobody calls it
#else
  for (int i = 0; i < 16; i++) c[i / 4] += (int32_t)a[i] * b[i];
  return c;
#endif
}
#if defined(__wasm_relaxed_simd__)
// The sums of the products of bytes 2i and 2i + 1 in 16 bits, which must hold them; b as `byte_pairs` says.
INLINE v8s v8s_dot2_i8(v16s a, v16u b) {
  return (v8s)wasm_i16x8_relaxed_dot_i8x16_i7x16((v128_t)a, (v128_t)b);
}
// The bytes of a whose numbers, 0 to 15, are in `which`; zero where that is 0x80.
INLINE v16u v16u_choose(v16u a, v16u which) { return (v16u)wasm_i8x16_relaxed_swizzle((v128_t)a, (v128_t)which); }
// The sums of shorts 2i and 2i + 1.
INLINE v4i v4i_pair_sums(v8s a) { return (v4i)wasm_i32x4_extadd_pairwise_i16x8((v128_t)a); }
#endif

enum { BYTES_INEXACT, BYTES_UNSIGNED, BYTES_SIGNED, BYTES_PAIRED };  // the last is no answer of byte_dots
// What this processor and engine make of v4i_dot4_i8's second operand beyond 127; with SIMD that is not relaxed there
// is no such instruction. Two products of -128 and -128 tell whether a signed one adds pairs in 16 bits.
INLINE int32_t byte_dots(void) {
#if defined(__wasm_relaxed_simd__)
  v16s a = {127, 127, 127, 127, -128, -128, -128, -128, 127, -128, 3, -5, -1, 2, -3, 4};
  v16u b = {255, 255, 255, 255, 255, 255, 128, 128, 128, 127, 200, 255, 0, 254, 129, 1};
  PIN(a);  // or the answer could be the compiler's, not the processor's
  PIN(b);
  const v4i found = v4i_dot4_i8(a, b, v4i_splat(7));
  const v4i if_unsigned = found - (v4i){129547, -98041, -668, 132}, if_signed = found - (v4i){-501, 33031, -32668, 388};
  return v4i_any(if_unsigned) ? v4i_any(if_signed) ? BYTES_INEXACT : BYTES_SIGNED : BYTES_UNSIGNED;
#else
  return SIMD ? BYTES_INEXACT : BYTES_UNSIGNED;
#endif
}

// Whether this processor and engine take v8s_dot2_i8's second operand as unsigned: exact where 16 bits hold the sums.
INLINE int32_t byte_pairs(void) {
#if defined(__wasm_relaxed_simd__)
  v16s a = {127, 1, 64, 64, -64, -64, -128, 0, 127, -127, 3, -5, -1, 2, -3, 4};
  v16u b = {255, 255, 255, 255, 255, 255, 255, 255, 128, 127, 200, 255, 0, 254, 129, 1};
  PIN(a);
  PIN(b);
  const v8s wrong = v8s_dot2_i8(a, b) ^ (v8s){32640, 32640, -32640, -32640, 127, -675, 508, -383};
  return !v4i_any((v4i)wrong);
#else
  return 0;
#endif
}
