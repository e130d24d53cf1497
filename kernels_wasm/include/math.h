// Vector functions that wasm has no instruction for: exp, log, tanh, erf and what is made of them.
//
// Polynomials are minimax fits made for this file; the error that each function reaches stands beside
// it and is held by web/python/tests/wasm/test_math.py. Infinities, zeros and NaN come out as IEEE 754
// asks; subnormal results are right where a comment does not say otherwise.
#pragma once

#include "simd.h"

#define LN2_HIGH 0x1.63p-1f           // 9 bits, so that n * LN2_HIGH is exact
#define LN2_LOW -2.12194440054690583e-4f
#define LN2 0.693147180559945309f
#define LOG2_E 1.44269504088896341f
#define INFINITE __builtin_inff()

// Where a vector is four scalars, what is long stands once: in the file that defines MATH_IS_HERE.
#if SIMD
#define LONG INLINE
#define LONG_STANDS_HERE 1
#else
#define LONG __attribute__((noinline))
#if defined(MATH_IS_HERE)
#define LONG_STANDS_HERE 1
#else
#define LONG_STANDS_HERE 0
#endif
#endif

INLINE v4f v4f_infinite(void) { return v4f_splat(INFINITE); }
INLINE v4f v4f_nan(void) { return v4f_splat(__builtin_nanf("")); }
// |a| with the sign of b.
INLINE v4f v4f_copysign(v4f a, v4f b) {
  const v4i sign = v4i_splat(INT32_MIN);
  return (v4f)(((v4i)a & ~sign) | ((v4i)b & sign));
}

// The larger and the smaller; a NaN in either operand wins, as in NumPy.
INLINE v4f v4f_larger(v4f a, v4f b) { return v4f_select(b == b, v4f_select(a < b, b, a), b); }
INLINE v4f v4f_smaller(v4f a, v4f b) { return v4f_select(b == b, v4f_select(b < a, b, a), b); }

#define WHOLE 0x1.8p23f  // x + WHOLE is a float whose last bits are x, rounded to a whole number, as an integer
// That number, of a sum with WHOLE. Converting the float takes seven instructions in V8.
INLINE v4i v4f_whole_bits(v4f sum) { return (v4i)sum - 0x4b400000; }

// p * 2^n for -252 <= n <= 254, rounded once.
INLINE v4f v4f_scale_by_power(v4f p, v4i n) {
  const v4i half = n >> 1, rest = n - half;
  return p * (v4f)((half + 127) << 23) * (v4f)((rest + 127) << 23);
}

// e^r - 1 for |r| <= ln(2)/2 and a little more; relative error 1e-7.
INLINE v4f v4f_expm1_small(v4f r) {
  v4f p = v4f_splat(1.3950610300526023e-3f);
  p = v4f_madd(p, r, v4f_splat(8.368958719074726e-3f));
  p = v4f_madd(p, r, v4f_splat(4.166620224714279e-2f));
  p = v4f_madd(p, r, v4f_splat(1.66665181517601e-1f));
  p = v4f_madd(p, r, v4f_splat(0.5f));
  return v4f_madd(p, r * r, r);
}

// e^(u + v) for -121 <= u <= 89 and a small v that u is too coarse to hold.
#if LONG_STANDS_HERE
LONG v4f v4f_exp_sum(v4f u, v4f v) {
  const v4f sum = u * LOG2_E + WHOLE, n = sum - WHOLE;
  const v4f r = (u - n * LN2_HIGH) - n * LN2_LOW + v;
  return v4f_scale_by_power(v4f_expm1_small(r) + 1.0f, v4f_whole_bits(sum));
}
#else
v4f v4f_exp_sum(v4f u, v4f v);
#endif

// e^x; error 1 ULP. What rounds to 0 is not computed: processors take a hundred cycles for a subnormal product.
INLINE v4f v4f_exp(v4f x) {
  const v4i nothing = x < -103.98f;
  const v4f none = v4f_splat(0.0f);
  const v4f e = v4f_exp_sum(v4f_min(v4f_select(nothing, none, x), v4f_splat(89.0f)), none);
  return v4f_select(nothing, none, e);
}

// What e^x is made of, held in registers over a loop: V8 makes a constant anew, in five instructions, wherever it is named.
typedef struct {
  v4f least, most, log2_e, whole, high, low, p[5], one;
  v4i bias;
} Exponents;

INLINE Exponents find_exponents(void) {
  Exponents c = {v4f_splat(-87.6f), v4f_splat(89.0f), v4f_splat(LOG2_E), v4f_splat(WHOLE), v4f_splat(-LN2_HIGH),
                 v4f_splat(-LN2_LOW),
                 {v4f_splat(1.3950610300526023e-3f), v4f_splat(8.368958719074726e-3f), v4f_splat(4.166620224714279e-2f),
                  v4f_splat(1.66665181517601e-1f), v4f_splat(0.5f)},
                 v4f_splat(1.0f), v4i_splat(126 << 23)};
  PIN(c.least);
  PIN(c.most);
  PIN(c.log2_e);
  PIN(c.whole);
  PIN(c.high);
  PIN(c.low);
  UNROLL for (int i = 0; i < 5; i++) PIN(c.p[i]);
  PIN(c.one);
  PIN(c.bias);
  return c;
}

// e^x as v4f_exp, but 0 where it is less than 1.7e-38.
INLINE v4f v4f_exp_normal(v4f x, const Exponents *c) {
  x = v4f_clamp(x, c->least, c->most);
  const v4f sum = v4f_madd(x, c->log2_e, c->whole), n = sum - c->whole;
  const v4f r = v4f_madd(n, c->low, v4f_madd(n, c->high, x));
  v4f p = c->p[0];
  UNROLL for (int i = 1; i < 5; i++) p = v4f_madd(p, r, c->p[i]);
  p = v4f_madd(p, r * r, r) + c->one;
  p *= (v4f)(((v4i)sum << 23) + c->bias);  // half of 2^n: that of 2^128 is a float
  return p + p;
}

// e^x - 1; error 3 ULP.
INLINE v4f v4f_expm1(v4f x) {
  x = v4f_clamp(x, v4f_splat(-20.0f), v4f_splat(89.0f));
  const v4f sum = x * LOG2_E + WHOLE, n = sum - WHOLE;
  const v4f q = v4f_expm1_small((x - n * LN2_HIGH) - n * LN2_LOW);
  const v4i power = v4f_whole_bits(sum);
  const v4f near_zero = v4f_scale_by_power(q, power) + (v4f_scale_by_power(v4f_splat(1.0f), power) - 1.0f);
  // 2^128 is not a float32, e^x - 1 for the largest x still is.
  return v4f_select(power > 120, v4f_scale_by_power(q + 1.0f, power), near_zero);
}

// ln(x); error 1 ULP. -inf for 0, NaN below.
#if LONG_STANDS_HERE
LONG v4f v4f_log(v4f x) {
  const v4i tiny = x < 0x1p-126f;
  const v4f scaled = v4f_select(tiny, x * 0x1p25f, x);
  const v4i exponent = ((v4i)scaled - 0x3f3504f3) >> 23;  // of a mantissa in [sqrt(1/2), sqrt(2))
  const v4f f = (v4f)((v4i)scaled - (exponent << 23)) - 1.0f;
  v4f p = v4f_splat(6.915146857500076e-2f);
  p = v4f_madd(p, f, v4f_splat(-1.1789695173501968e-1f));
  p = v4f_madd(p, f, v4f_splat(1.1873016506433487e-1f));
  p = v4f_madd(p, f, v4f_splat(-1.2384369969367981e-1f));
  p = v4f_madd(p, f, v4f_splat(1.4218655228614807e-1f));
  p = v4f_madd(p, f, v4f_splat(-1.6669249534606934e-1f));
  p = v4f_madd(p, f, v4f_splat(2.0002226531505585e-1f));
  p = v4f_madd(p, f, v4f_splat(-2.4999986588954926e-1f));
  p = v4f_madd(p, f, v4f_splat(3.333331048488617e-1f));
  const v4f e = v4f_from_i32(exponent + (tiny & -25));
  const v4f square = f * f;
  const v4f tail = v4f_madd(p, square * f, e * LN2_LOW) - 0.5f * square;
  const v4f special = v4f_select(x == 0.0f, -v4f_infinite(), v4f_select(x < 0.0f, v4f_nan(), x));
  return v4f_select((x > 0.0f) & (x < v4f_infinite()), (f + tail) + e * LN2_HIGH, special);
}
#else
v4f v4f_log(v4f x);
#endif

// ln(1 + x) for x >= 0; error 2 ULP.
INLINE v4f v4f_log1p_positive(v4f x) {
  const v4f u = x + 1.0f;
  const v4f lost = v4f_select(u < v4f_infinite(), (x - (u - 1.0f)) / u, v4f_splat(0.0f));
  return v4f_log(u) + lost;
}

// 1 / (1 + e^-x); error 3 ULP, subnormal tails included.
INLINE v4f v4f_sigmoid(v4f x) {
  const v4f e = v4f_exp(-v4f_abs(x));
  return v4f_select(x >= 0.0f, v4f_splat(1.0f), e) / (e + 1.0f);
}

// tanh(x); error 2 ULP.
INLINE v4f v4f_tanh(v4f x) {
  const v4f z = x * x;
  v4f p = v4f_splat(-5.717036779969931e-3f);
  p = v4f_madd(p, z, v4f_splat(2.0650578662753105e-2f));
  p = v4f_madd(p, z, v4f_splat(-5.374349653720856e-2f));
  p = v4f_madd(p, z, v4f_splat(1.3331490755081177e-1f));
  p = v4f_madd(p, z, v4f_splat(-3.333328366279602e-1f));
  const v4f small = v4f_madd(p * z, x, x);
  const v4f size = v4f_abs(x);
  const v4f large = 1.0f - 2.0f / (v4f_exp(size + size) + 1.0f);
  return v4f_select(size < 0.625f, small, v4f_copysign(large, x));
}

#define ERF_SPLIT 0.95f
// erf(x) for |x| <= ERF_SPLIT; relative error 1e-7.
INLINE v4f v4f_erf_small(v4f x) {
  const v4f z = x * x;
  v4f p = v4f_splat(8.215423440560699e-5f);
  p = v4f_madd(p, z, v4f_splat(-8.105965098366141e-4f));
  p = v4f_madd(p, z, v4f_splat(5.19779697060585e-3f));
  p = v4f_madd(p, z, v4f_splat(-2.6858104392886162e-2f));
  p = v4f_madd(p, z, v4f_splat(1.1283672600984573e-1f));
  p = v4f_madd(p, z, v4f_splat(-3.7612631916999817e-1f));
  p = v4f_madd(p, z, v4f_splat(1.128379225730896f));
  return p * x;
}

// erfc(t) = e^(-t*t) * g(1 / (1 + t/2)) for ERF_SPLIT <= t <= 11, where u + v = -t*t; relative error 4e-7.
INLINE v4f v4f_erfc_large(v4f t, v4f u, v4f v) {
  const v4f w = 2.0f / (t + 2.0f);
  v4f p = v4f_splat(-4.404999688267708e-2f);
  p = v4f_madd(p, w, v4f_splat(2.3836129903793335e-1f));
  p = v4f_madd(p, w, v4f_splat(-4.291948080062866e-1f));
  p = v4f_madd(p, w, v4f_splat(2.402665615081787e-1f));
  p = v4f_madd(p, w, v4f_splat(-1.3349541462957859e-2f));
  p = v4f_madd(p, w, v4f_splat(2.0047271251678467e-1f));
  p = v4f_madd(p, w, v4f_splat(2.431434988975525e-1f));
  p = v4f_madd(p, w, v4f_splat(2.824104428291321e-1f));
  p = v4f_madd(p, w, v4f_splat(2.820832133293152e-1f));
  return p * w * v4f_exp_sum(u, v);
}
// x without the bits that would make its square inexact.
INLINE v4f v4f_upper_half(v4f x) { return (v4f)((v4i)x & (int32_t)0xfffff000); }

// erf(x); error 3 ULP.
INLINE v4f v4f_erf(v4f x) {
  const v4f size = v4f_abs(x);
  const v4f t = v4f_min(size, v4f_splat(4.5f));  // beyond, 1 - erfc rounds to 1
  const v4f high = v4f_upper_half(t);
  const v4f large = 1.0f - v4f_erfc_large(t, -(high * high), (high - t) * (high + t));
  return v4f_select(size < ERF_SPLIT, v4f_erf_small(x), v4f_copysign(large, x));
}
