// Elementwise functions of one float32 tensor: y[i] = f(x[i]), the rows of ops/elementwise.py.
//
//   x  float32  read, up to 12 bytes past its end       y  float32  written in full; may be x
//   a, b        the constants of the formula
//
// Split by elements.
#include "lanes.h"
#include "math.h"
#include "trig.h"

#define UNARY(NAME, FORMULA)                                                                             \
  void f32_##NAME(const float *from, float *to, float a_value, float b_value, int32_t begin, int32_t end) { \
    const v4f a = v4f_splat(a_value), b = v4f_splat(b_value);                                            \
    (void)a, (void)b;                                                                                    \
    NO_UNROLL for (int32_t i = begin; i < end; i += 4) {                                                 \
      const v4f x = v4f_load(from + i);                                                                  \
      const v4f y = FORMULA;                                                                             \
      v4f_store_lanes(to + i, y, end - i);                                                               \
    }                                                                                                    \
  }

static const v4f zero = {0, 0, 0, 0}, one = {1, 1, 1, 1};

// A NaN stays a NaN, as in NumPy.
INLINE v4f v4f_sign(v4f x) {
  const v4f size = v4f_select(x == 0.0f, zero, one);
  return v4f_select(x == x, v4f_copysign(size, x), x);
}

UNARY(abs, v4f_abs(x))
UNARY(ceil, v4f_ceil(x))
UNARY(clamp, v4f_clamp(x, a, b))
UNARY(cos, v4f_cos(x))
UNARY(elu, v4f_select(x > 0.0f, x, a * v4f_expm1(x)))
UNARY(erf, v4f_erf(x))
UNARY(exp, v4f_exp(x))
UNARY(floor, v4f_floor(x))
UNARY(gelu, v4f_gelu(x))
UNARY(hard_sigmoid, v4f_clamp(a * x + b, zero, one))
UNARY(hard_swish, x * v4f_clamp(x + 3.0f, zero, v4f_splat(6.0f)) * (1.0f / 6.0f))
UNARY(leaky_relu, v4f_select(x >= 0.0f, x, a * x))
UNARY(linear, a * x + b)
UNARY(log, v4f_log(x))
UNARY(neg, -x)
UNARY(reciprocal, 1.0f / x)
UNARY(round_even, v4f_round_even(x))
UNARY(rsqrt, 1.0f / v4f_sqrt(x))
UNARY(sigmoid, v4f_sigmoid(x))
UNARY(sign, v4f_sign(x))
UNARY(sin, v4f_sin(x))
UNARY(softplus, v4f_softplus(x))
UNARY(softsign, x / (v4f_abs(x) + 1.0f))
UNARY(sqrt, v4f_sqrt(x))
UNARY(square, x * x)
UNARY(tan, v4f_tan(x))
UNARY(tanh, v4f_tanh(x))
