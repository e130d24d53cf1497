// Float16 storage: there is no float16 arithmetic in wasm, only these conversions.
#pragma once

#include "simd.h"

// The float32 of a float16's bits: exact, subnormals, infinities and NaNs included.
INLINE float f32_from_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
  // Scaling by 2^112 moves the exponent's bias and makes subnormals normal.
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  const uint32_t bits = h >= 0x8000 ? h & 0x7fff : h;
  const uint32_t value = bits >= 0x7c00 ? magnitude | 0x7f800000 : __builtin_bit_cast(uint32_t, scaled);
  return __builtin_bit_cast(float, sign | value);
}

// The float16 bits nearest to a float32, ties to even; too large becomes infinity, NaN stays NaN.
INLINE uint16_t f16_from_f32(float f) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);  // 65520 and more round to infinity
  if (magnitude < 0x38800000) {                                   // below 2^-14: a subnormal or zero
    // Adding 0.5 leaves the float16's bits, rounded to even, at the bottom of the mantissa.
    const float moved = __builtin_bit_cast(float, magnitude) + 0.5f;
    return (uint16_t)(sign | (__builtin_bit_cast(uint32_t, moved) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}
