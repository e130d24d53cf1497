// Elementwise functions of one float32 tensor: y[i] = f(x[i]), the formulas of the operators' rows.
//
//   x  float32  read, up to 12 bytes past its end       y  float32  written in full; may be x
//   a, b        the constants of the formula
//   Needs: y overlaps x only where it is x.
//
// Units: elements.
#define MATH_IS_HERE
#include "epilogue.h"
#include "formulas.h"
#include "gelu.h"
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

// A NaN stays a NaN, as in NumPy.
INLINE v4f v4f_sign(v4f x) {
  const v4f size = v4f_select(x == 0.0f, v4f_splat(0.0f), v4f_splat(1.0f));
  return v4f_select(x == x, v4f_copysign(size, x), x);
}

// What 1 + e^-x is made of, held in registers: V8 makes a constant anew, in five instructions, wherever it is named.
typedef struct {
  v4f scale, least, most, whole, one, p[6];
  v4i bias;
} Powers;

INLINE Powers find_powers(void) {
  Powers c = {v4f_splat(-LOG2_E), v4f_splat(-126.0f), v4f_splat(128.0f), v4f_splat(WHOLE), v4f_splat(1.0f),
              {v4f_splat(1.0000001192092896f), v4f_splat(6.931469440460205e-1f), v4f_splat(2.4022117257118225e-1f),
               v4f_splat(5.550714582204819e-2f), v4f_splat(9.675655514001846e-3f), v4f_splat(1.3276338577270508e-3f)},
              v4i_splat(127 << 23)};
  PIN(c.scale);
  PIN(c.least);
  PIN(c.most);
  PIN(c.whole);
  PIN(c.one);
  PIN(c.bias);
  UNROLL for (int i = 0; i < 6; i++) PIN(c.p[i]);
  return c;
}

// 1 + e^-x for what ends a product, whose sums are no more exact: relative error 3e-7 + |x| * 9e-8. Infinite where it
// is more than 2e38.
INLINE v4f one_and_exp_minus(v4f x, const Powers *c) {
  const v4f power = v4f_clamp(x * c->scale, c->least, c->most);  // 2^128 is infinite
  const v4f sum = power + c->whole, f = power - (sum - c->whole);
  v4f p = c->p[5];
  UNROLL for (int i = 4; i >= 0; i--) p = v4f_madd(p, f, c->p[i]);
  return v4f_madd(p, (v4f)(((v4i)sum << 23) + c->bias), c->one);
}

INLINE v4f curve(v4f v, int32_t act, const Powers *c) {
  switch (act) {
    case ACTIVATION_HARD_SWISH: return hard_swish(v);
    case ACTIVATION_SIGMOID: return c->one / one_and_exp_minus(v, c);
    case ACTIVATION_TANH: return v4f_tanh(v);
    case ACTIVATION_GELU: gelu_sums(&v, 1); return v;
    case ACTIVATION_GELU_TANH: return v / one_and_exp_minus(v * (1.5957691216057308f + 0.07135481282553f * (v * v)), c);
    default: return v / one_and_exp_minus(v, c);
  }
}

v4f activate_long(v4f v, int32_t act) {
  const Powers c = find_powers();
  return curve(v, act, &c);
}

#if SIMD
INLINE void curve_rows(float *y, int32_t step, int32_t rows, int32_t columns, const int act) {
  const Powers c = find_powers();
  for (; rows > 0; rows--, y += step) {
    float *to = y;
    int32_t left = columns;
    if (act == ACTIVATION_GELU) {
      NO_UNROLL for (; left >= 4 * GELU_VECTORS; left -= 4 * GELU_VECTORS, to += 4 * GELU_VECTORS) {
        v4f x[GELU_VECTORS];
        UNROLL for (int i = 0; i < GELU_VECTORS; i++) x[i] = v4f_load(to + 4 * i);
        gelu_sums(x, GELU_VECTORS);
        UNROLL for (int i = 0; i < GELU_VECTORS; i++) v4f_store(to + 4 * i, x[i]);
      }
    }
    NO_UNROLL for (; left >= 4; left -= 4, to += 4) v4f_store(to, curve(v4f_load(to), act, &c));
    if (left > 0) v4f_store_first(to, curve(v4f_load(to), act, &c), left);
  }
}

void activate_rows(float *y, int32_t step, int32_t rows, int32_t columns, int32_t act) {
  switch (act) {
    case ACTIVATION_HARD_SWISH: curve_rows(y, step, rows, columns, ACTIVATION_HARD_SWISH); return;
    case ACTIVATION_SIGMOID: curve_rows(y, step, rows, columns, ACTIVATION_SIGMOID); return;
    case ACTIVATION_TANH: curve_rows(y, step, rows, columns, ACTIVATION_TANH); return;
    case ACTIVATION_GELU: curve_rows(y, step, rows, columns, ACTIVATION_GELU); return;
    case ACTIVATION_GELU_TANH: curve_rows(y, step, rows, columns, ACTIVATION_GELU_TANH); return;
    default: curve_rows(y, step, rows, columns, ACTIVATION_SILU);
  }
}
#else
void activate_rows(float *y, int32_t step, int32_t rows, int32_t columns, int32_t act) {
  for (; rows > 0; rows--, y += step) {
    for (int32_t i = 0; i < columns; i += 4) v4f_store_lanes(y + i, activate_long(v4f_load(y + i), act), columns - i);
  }
}
#endif

FLOAT_UNARY_ROWS(UNARY)
