// sin, cos, tan of float32 vectors, right for every argument: errors stay below 2 ULP (tan: 4).
#pragma once

#include "simd.h"

typedef double v4d __attribute__((vector_size(32)));
typedef int64_t v4l __attribute__((vector_size(32)));

// x = q * pi/2 + r with |r| <= pi/4 for |x| >= 2^20, by multiplying with the bits of 2/pi that matter.
static __attribute__((noinline)) float trig_reduce_large(float x, int32_t *q) {
  static const uint32_t two_over_pi[10] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                           0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const int32_t exponent = (int32_t)(bits >> 23 & 255) - 150;  // |x| = mantissa * 2^exponent
  const uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  // Bits of 2/pi worth 4 turns or more drop out: 96 bits from place exponent - 1 on are enough.
  const uint32_t first = (uint32_t)(exponent + 30), shift = first & 31;
  const uint32_t *w = two_over_pi + (first >> 5);
  const uint32_t high = (uint32_t)((((uint64_t)w[0] << 32) | w[1]) << shift >> 32);
  const uint32_t middle = (uint32_t)((((uint64_t)w[1] << 32) | w[2]) << shift >> 32);
  const uint32_t low = (uint32_t)((((uint64_t)w[2] << 32) | w[3]) << shift >> 32);
  const uint64_t p = mantissa * low >> 32, m = mantissa * middle + p;
  const uint64_t turns = (mantissa * high << 32) + m;  // quarter turns, 62 bits behind the point
  const uint64_t nearest = (turns + (1ull << 61)) >> 62;
  const double rest = (double)(int64_t)(turns - (nearest << 62)) * 0x1.921fb54442d18p-62;
  *q = (int32_t)(bits >> 31 ? 0 - nearest : nearest);
  return (float)(bits >> 31 ? -rest : rest);
}

// r with |r| <= pi/4 and q modulo 4; NaN for NaN and infinities.
INLINE v4f trig_reduce(v4f x, v4i *q) {
  const v4f size = (v4f)((v4i)x & INT32_MAX);
  const v4d wide = __builtin_convertvector(x, v4d);
  // Adding 3 * 2^51 rounds to an integer and leaves it in the low bits.
  const v4d moved = wide * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const v4d n = moved - 0x1.8p52;
  v4f r = __builtin_convertvector((wide - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34, v4f);
  *q = __builtin_convertvector((v4l)moved, v4i);
  const v4i large = size >= 0x1p20f;
  if (UNLIKELY(v4i_sum(large) != 0)) {
    for (int i = 0; i < 4; i++) {
      if (size[i] < 0x1p20f) continue;
      int32_t quarter = 0;
      r[i] = size[i] < __builtin_inff() ? trig_reduce_large(x[i], &quarter) : __builtin_nanf("");
      (*q)[i] = quarter;
    }
  }
  return r;
}

// sin(r) for |r| <= pi/4.
INLINE v4f sin_small(v4f r) {
  const v4f z = r * r;
  v4f p = v4f_splat(-1.95169763173908e-4f);
  p = v4f_madd(p, z, v4f_splat(8.332176133990288e-3f));
  p = v4f_madd(p, z, v4f_splat(-1.6666655242443085e-1f));
  return v4f_madd(p * z, r, r);
}
// cos(r) for |r| <= pi/4.
INLINE v4f cos_small(v4f r) {
  const v4f z = r * r;
  v4f p = v4f_splat(2.4438089894829318e-5f);
  p = v4f_madd(p, z, v4f_splat(-1.3887364184483886e-3f));
  p = v4f_madd(p, z, v4f_splat(4.166664555668831e-2f));
  return v4f_madd(p * z, z, 1.0f - 0.5f * z);
}

// sin(x + quarters * pi/2)
INLINE v4f v4f_sine(v4f x, int32_t quarters) {
  v4i q;
  const v4f r = trig_reduce(x, &q);
  q += quarters;
  const v4f value = v4f_select((q & 1) == 0, sin_small(r), cos_small(r));
  return (v4f)((v4i)value ^ ((q & 2) << 30));
}
INLINE v4f v4f_sin(v4f x) { return v4f_sine(x, 0); }
INLINE v4f v4f_cos(v4f x) { return v4f_sine(x, 1); }
INLINE v4f v4f_tan(v4f x) {
  v4i q;
  const v4f r = trig_reduce(x, &q);
  const v4f s = sin_small(r), c = cos_small(r);
  const v4i even = (q & 1) == 0;
  return v4f_select(even, s, -c) / v4f_select(even, c, s);
}
