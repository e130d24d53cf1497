// GELU, whose constants are more than registers hold. Its error is held by web/python/tests/wasm/test_math.py.
#pragma once

#include "math.h"

// A constant in all lanes, for what needs more of them than registers hold: V8 makes one that stands in the code anew, in
// five instructions, wherever it is named, and loads this one by two.
#if SIMD
#define v4f_constant(value)                    \
  ({                                           \
    static const float held = (value);         \
    const float *at = &held;                   \
    PIN(at);                                   \
    v4f_load_splat(at);                        \
  })
#else
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
