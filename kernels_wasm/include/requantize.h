// Exact integer sums to stored 8-bit results: y = clamp(round(float32(sum) * scale), lo, hi) + zero, ties to even.
//
// Bytes are handled as uint8. A signed tensor is one whose bytes are flipped by 0x80 when they come and go; its
// zero point is then 128 larger.
#pragma once

#include "simd.h"

typedef struct {
  v4f lo, hi;    // bounds of the result before the zero point is added
  v4f rounding;  // what rounds a float
  v4i zero;      // of the uint8 form, less the bits of `rounding`
  v16u flip;     // 0x80 for int8 results, else 0
#if SIMD
  v16u most;  // the upper bound as a byte of the uint8 form
#endif
} Stored;

// Bounds are integers within +-2^21, so that clamping first changes nothing and adding 1.5 * 2^23 rounds: the integer
// is then the low bits of the float. Above 2^22 they are no integer any more, but still larger than any byte, up to
// infinity: with SIMD the upper bound is taken of the bytes, sixteen at a time.
INLINE Stored stored_as(float lo, float hi, int32_t zero, int32_t flip) {
  return (Stored){v4f_splat(lo), v4f_splat(hi), v4f_splat(0x1.8p23f), v4i_splat(zero - 0x4b400000),
                  (v16u){} + (uint8_t)flip,
#if SIMD
                  (v16u){} + (uint8_t)i32_clamp((int32_t)hi + zero, 0, 255),
#endif
  };
}

// Numbers of units as stored integers, those above the upper bound as they are with SIMD.
INLINE v4i stored_units(v4f units, const Stored *s) {
#if SIMD
  const v4f y = v4f_max(units, s->lo);
#else
  const v4f y = v4f_clamp(units, s->lo, s->hi);
#endif
  return (v4i)(y + s->rounding) + s->zero;
}

INLINE v4i requantize(v4i sums, v4f scale, const Stored *s) { return stored_units(v4f_from_i32(sums) * scale, s); }

// The same of a number of units; a NaN is zero.
INLINE v4i stored_real(v4f units, const Stored *s) {
  return stored_units(v4f_select(units == units, units, v4f_splat(0.0f)), s);
}

// Sixteen results as bytes.
INLINE v16u stored_pair(v8s first, v8s second, const Stored *s) {
  const v16u bytes = v16u_narrow(first, second);
#if SIMD
  return (v16u)wasm_u8x16_min((v128_t)bytes, (v128_t)s->most) ^ s->flip;
#else
  return bytes ^ s->flip;
#endif
}

// Eight results as bytes in the low half.
INLINE v16u stored_bytes(v4i low, v4i high, const Stored *s) {
  const v8s shorts = v8s_narrow(low, high);
  return stored_pair(shorts, shorts, s);
}

INLINE void store_eight(uint8_t *y, v16u bytes) {
  v8ub_store(y, __builtin_shufflevector(bytes, bytes, 0, 1, 2, 3, 4, 5, 6, 7));
}

// The first `count` (1 to 8) bytes.
INLINE void store_bytes(uint8_t *y, v16u bytes, int32_t count) {
  if (LIKELY(count >= 8)) {
    store_eight(y, bytes);
  } else {
    for (int32_t i = 0; i < count; i++) y[i] = bytes[i];
  }
}

#if SIMD
// The first `count` bytes of both halves; of the first one alone where the other has no place.
INLINE void store_pair(uint8_t *y, uint8_t *other, v16u bytes, int32_t count) {
  if (LIKELY(count >= 8 && other)) {
    store_eight(y, bytes);
    wasm_v128_store64_lane(other, (v128_t)bytes, 1);
  } else {
    store_bytes(y, bytes, count);
    const int32_t rest = !other ? 0 : count < 8 ? count : 8;
    for (int32_t i = 0; i < rest; i++) other[i] = bytes[8 + i];
  }
}
#endif

// Eight bytes as shorts 0..255. Flipped after widening, so that load and widening are one instruction.
INLINE v8s load_shorts(const uint8_t *x, int32_t flip) { return v8s_widen_u(v8ub_load(x)) ^ (int16_t)flip; }
