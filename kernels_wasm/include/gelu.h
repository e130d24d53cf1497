// GELU, whose constants are more than registers hold. Its error is held by web/python/tests/wasm/test_math.py.
#pragma once

#include "math.h"

// A constant in all lanes, for what needs more of them than registers hold: V8 makes one that stands in the code anew, in
// five instructions, wherever it is named, and loads this one by two.
#if SIMD
INLINE v4f v4f_held(const float *at) {
  PIN(at);
  return v4f_load_splat(at);
}
#define v4f_constant(value)                    \
  ({                                           \
    static const float held = (value);         \
    v4f_held(&held);                           \
  })
#else
INLINE v4f v4f_held(const float *at) { return v4f_splat(*at); }
#define v4f_constant(value) v4f_splat(value)
#endif

#define GELU_TAIL 12.9f
// x/2 * (1 + erf(x / sqrt 2)); error 12 ULP: the far negative tail loses no digits. Beyond it, 0 for 3e-37 and less.
// What |x| lacks of it is |x|/2 * erfc(t), where t = |x| / sqrt 2 and erfc(t) = e^(-t*t) * g(2 / (t + 2)); relative
// error of g 5e-8 for t <= 9.2.
INLINE v4f v4f_gelu(v4f x) {
  const v4f size = v4f_min(v4f_abs(x), v4f_constant(GELU_TAIL)), high = v4f_upper_half(size);
  const v4f half = v4f_constant(0.5f), two = v4f_constant(2.0f), whole = v4f_constant(WHOLE);
  const v4f w = two / v4f_madd(size, v4f_constant(0.70710678118654752f), two);
  v4f p = v4f_constant(-5.875103175640106e-2f);
  p = v4f_madd(p, w, v4f_constant(2.83015638589859e-1f));
  p = v4f_madd(p, w, v4f_constant(-4.839518368244171e-1f));
  p = v4f_madd(p, w, v4f_constant(2.743256390094757e-1f));
  p = v4f_madd(p, w, v4f_constant(-2.40276288241148e-2f));
  p = v4f_madd(p, w, v4f_constant(2.0157738029956818e-1f));
  p = v4f_madd(p, w, v4f_constant(2.4338723719120026e-1f));
  p = v4f_madd(p, w, v4f_constant(2.823358476161957e-1f));
  p = v4f_madd(p, w, v4f_constant(2.820886969566345e-1f));
  const v4f u = -half * high * high, v = half * (high - size) * (high + size);  // of -t*t, exact and the rest
  const v4f sum = v4f_madd(u, v4f_constant(LOG2_E), whole), n = sum - whole;
  const v4f r = v4f_madd(n, v4f_constant(-LN2_LOW), v4f_madd(n, v4f_constant(-LN2_HIGH), u)) + v;
  v4f e = v4f_constant(1.3950610300526023e-3f);
  e = v4f_madd(e, r, v4f_constant(8.368958719074726e-3f));
  e = v4f_madd(e, r, v4f_constant(4.166620224714279e-2f));
  e = v4f_madd(e, r, v4f_constant(1.66665181517601e-1f));
  e = v4f_madd(e, r, half);
  e = v4f_madd(e, r * r, r) + v4f_constant(1.0f);
  const v4f power = (v4f)(((v4i)sum << 23) + (126 << 23));  // half of 2^n
  const v4f tail = size * (p * w) * (e * power);
  return v4f_max(x, v4f_splat(0.0f)) - (v4f)((v4i)tail & (v4i)(x >= v4f_constant(-GELU_TAIL)));
}

// The same for what ends a product, whose sums are no more exact; absolute error 3e-7, relative error 6e-6 down to -12.
// `count` vectors side by side: each constant is loaded once for all of them, and one waits while another computes.
// The same tail by e^(-x*x/2) * |x| * g(1 / (1 + 0.36 |x|)), relative error of g 7e-7; 2^f as in one_and_exp_minus.
#define GELU_VECTORS 2
INLINE void gelu_sums(v4f x[GELU_VECTORS], const int count) {
  static const float g[] = {0.04771215f, -0.18200899f, 0.18401021f, 0.02444128f, 0.14049153f, 0.14163077f, 0.14372317f};
  static const float powers[] = {1.3276338577270508e-3f, 9.675655514001846e-3f, 5.550714582204819e-2f,
                                 2.4022117257118225e-1f, 6.931469440460205e-1f, 1.0f};
  v4f size[GELU_VECTORS], w[GELU_VECTORS], p[GELU_VECTORS], e[GELU_VECTORS], f[GELU_VECTORS], scale[GELU_VECTORS];
  const v4f most = v4f_constant(GELU_TAIL), one = v4f_constant(1.0f), slope = v4f_constant(0.36f);
  UNROLL for (int i = 0; i < count; i++) {
    size[i] = v4f_min(v4f_abs(x[i]), most);
    w[i] = one / v4f_madd(size[i], slope, one);
  }
  const v4f half = v4f_constant(-0.5f * LOG2_E), whole = v4f_constant(WHOLE);
  UNROLL for (int i = 0; i < count; i++) {
    const v4f power = size[i] * size[i] * half, sum = power + whole;
    f[i] = power - (sum - whole);
    scale[i] = (v4f)(((v4i)sum << 23) + (127 << 23));
    e[i] = v4f_held(powers);
    p[i] = v4f_held(g);
  }
  UNROLL for (int k = 1; k < 6; k++) {
    const v4f next = v4f_held(powers + k);
    UNROLL for (int i = 0; i < count; i++) e[i] = v4f_madd(e[i], f[i], next);
  }
  UNROLL for (int k = 1; k < 7; k++) {
    const v4f next = v4f_held(g + k);
    UNROLL for (int i = 0; i < count; i++) p[i] = v4f_madd(p[i], w[i], next);
  }
  const v4f least = v4f_constant(-GELU_TAIL), none = v4f_splat(0.0f);
  UNROLL for (int i = 0; i < count; i++) {
    const v4f tail = (size[i] * w[i]) * p[i] * (e[i] * scale[i]);
    x[i] = v4f_max(x[i], none) - (v4f)((v4i)tail & (v4i)(x[i] >= least));
  }
}
