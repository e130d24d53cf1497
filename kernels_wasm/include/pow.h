// a^b of float32 vectors through float64, so that the result is within 1 ULP of the rounded power.
#pragma once

#include "trig.h"

INLINE v4d v4d_select(v4l mask, v4d yes, v4d no) { return (v4d)(((v4l)yes & mask) | ((v4l)no & ~mask)); }

// log2(x) for x >= 0.
INLINE v4d log2_wide(v4f x) {
  const v4d wide = __builtin_convertvector(x, v4d);  // every float32, subnormals too, is normal here
  const v4l bits = (v4l)wide;
  const v4l exponent = (bits - 0x3fe6a09e667f3bcdll) >> 52;  // of a mantissa in [sqrt(1/2), sqrt(2))
  const v4d mantissa = (v4d)(bits - (exponent << 52));
  const v4d s = (mantissa - 1.0) / (mantissa + 1.0), z = s * s;
  v4d p = z * 0.3407831275495288 + 0.41166990679848203;
  p = p * z + 0.5770836310098573;
  p = p * z + 0.9617966731041618;
  p = p * z + 2.8853900817902747;
  return __builtin_convertvector(exponent, v4d) + p * s;
}

// 2^z for |z| <= 200.
INLINE v4d exp2_wide(v4d z) {
  const v4d moved = z + 0x1.8p52, f = z - (moved - 0x1.8p52);
  v4d p = f * 1.5316460187598972e-05 + 0.00015469731683380835;
  p = p * f + 0.001333342265217322;
  p = p * f + 0.009618025604065222;
  p = p * f + 0.05550410976100546;
  p = p * f + 0.24022651213584845;
  p = p * f + 0.6931471805350289;
  p = p * f + 0.9999999999595499;
  return (v4d)((v4l)p + ((v4l)moved << 52));
}

// a^b with C's rules for zeros, infinities, NaN and negative a.
INLINE v4f v4f_pow(v4f a, v4f b) {
  const v4f size = v4f_abs(a), infinite = v4f_splat(__builtin_inff()), nan = v4f_splat(__builtin_nanf(""));
  v4d z = log2_wide(size) * __builtin_convertvector(b, v4d);
  z = v4d_select(z < -200.0, (v4d){-200, -200, -200, -200}, z);
  z = v4d_select(z > 200.0, (v4d){200, 200, 200, 200}, z);
  v4f y = __builtin_convertvector(exp2_wide(z), v4f);
  // |a| of 0 or infinity, where log2 above is not a number of use
  const v4i grows = (size > 1.0f) == (b > 0.0f);
  const v4f limit = v4f_select(grows, infinite, v4f_splat(0.0f));
  y = v4f_select((size == 0.0f) | (size == infinite) | (v4f_abs(b) == infinite), limit, y);
  // Every float32 of 2^24 and more is an even integer.
  const v4i integer = v4f_trunc(b) == b;
  const v4i odd = integer & (v4f_abs(b) < 0x1p24f) & ((v4i_from_f32(b) & 1) != 0);
  const v4i negative = (v4i)a >> 31;
  y = (v4f)((v4i)y ^ (negative & odd & INT32_MIN));
  const v4i no_power = negative & ~integer & (size != 0.0f) & (size != infinite);
  y = v4f_select(no_power | (a != a) | (b != b), nan, y);
  return v4f_select((b == 0.0f) | (a == 1.0f) | ((size == 1.0f) & (v4f_abs(b) == infinite)), v4f_splat(1.0f), y);
}
