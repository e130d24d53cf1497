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
} Stored;

// Bounds are integers within +-2^21, so that clamping first changes nothing and adding 1.5 * 2^23 rounds: the integer
// is then the low bits of the float.
INLINE Stored stored_as(float lo, float hi, int32_t zero, int32_t flip) {
  return (Stored){v4f_splat(lo), v4f_splat(hi), v4f_splat(0x1.8p23f), v4i_splat(zero - 0x4b400000),
                  (v16u){} + (uint8_t)flip};
}

INLINE v4i requantize(v4i sums, v4f scale, const Stored *s) {
  const v4f y = v4f_clamp(v4f_from_i32(sums) * scale, s->lo, s->hi);
  return (v4i)(y + s->rounding) + s->zero;
}

// The same of a number of units; a NaN is zero.
INLINE v4i stored_real(v4f units, const Stored *s) {
  const v4f y = v4f_clamp(v4f_select(units == units, units, v4f_splat(0.0f)), s->lo, s->hi);
  return (v4i)(y + s->rounding) + s->zero;
}

// Eight results as bytes in the low half.
INLINE v16u stored_bytes(v4i low, v4i high, const Stored *s) {
  const v8s shorts = v8s_narrow(low, high);
  return v16u_narrow(shorts, shorts) ^ s->flip;
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

// Eight bytes as shorts 0..255. Flipped after widening, so that load and widening are one instruction.
INLINE v8s load_shorts(const uint8_t *x, int32_t flip) { return v8s_widen_u(v8ub_load(x)) ^ (int16_t)flip; }
