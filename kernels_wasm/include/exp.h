// exp, sigmoid and tanh of four floats, within 2 ulp (sigmoid 3, tanh 4) of the exact value.
#pragma once

#include "simd.h"

// 2^n for -126 <= n <= 127
INLINE v4f v4f_exp2_int(v4i n) { return (v4f)((n + v4i_splat(127)) << 23); }

// exp(x): 0 below -104, infinity above 88.73; NaN stays NaN.
INLINE v4f v4f_exp(v4f x) {
  const v4f bounded = v4f_clamp(x, v4f_splat(-104.0f), v4f_splat(88.8f));
  const v4f n = v4f_round_even(bounded * v4f_splat(0x1.715476p+0f));
  // ln 2 in two parts: n * the high part is exact.
  v4f r = bounded - n * v4f_splat(0x1.62e4p-1f);
  r = r - n * v4f_splat(0x1.7f7d1cp-20f);
  v4f p = v4f_splat(0x1.6850e4p-10f);
  p = v4f_madd(p, r, v4f_splat(0x1.123bccp-7f));
  p = v4f_madd(p, r, v4f_splat(0x1.555b98p-5f));
  p = v4f_madd(p, r, v4f_splat(0x1.55548ep-3f));
  p = v4f_madd(p, r, v4f_splat(0x1.fffff8p-2f));
  p = v4f_madd(p * r, r, r) + v4f_splat(1.0f);
  // Two factors, so that results near the largest and the subnormal ones are right too.
  const v4i whole = v4i_from_f32(n);
  const v4i half = whole >> 1;
  return p * v4f_exp2_int(half) * v4f_exp2_int(whole - half);
}

INLINE v4f v4f_sigmoid(v4f x) {
  const v4f e = v4f_exp(v4f_splat(0.0f) - v4f_abs(x));  // never overflows
  const v4f low = e / (v4f_splat(1.0f) + e);
  return v4f_select(x < v4f_splat(0.0f), low, v4f_splat(1.0f) / (v4f_splat(1.0f) + e));
}

INLINE v4f v4f_tanh(v4f x) {
  const v4f a = v4f_abs(x);
  // Below 0.55 the quotient would cancel: x + x^3 * q(x^2).
  const v4f s = x * x;
  v4f q = v4f_splat(-0x1.1a5fb4p-7f);
  q = v4f_madd(q, s, v4f_splat(0x1.5e4e4ap-6f));
  q = v4f_madd(q, s, v4f_splat(-0x1.b9b7c6p-5f));
  q = v4f_madd(q, s, v4f_splat(0x1.110ea4p-3f));
  q = v4f_madd(q, s, v4f_splat(-0x1.55553ep-2f));
  const v4f small = v4f_madd(x * s, q, x);
  const v4f large = v4f_splat(1.0f) - v4f_splat(2.0f) / (v4f_exp(a + a) + v4f_splat(1.0f));
  const v4f signed_large = v4f_select(x < v4f_splat(0.0f), v4f_splat(0.0f) - large, large);
  return v4f_select(a < v4f_splat(0.55f), small, signed_large);
}
