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

v4f activate_long(v4f v, int32_t act) { return act == ACTIVATION_SIGMOID ? v4f_sigmoid(v) : v4f_tanh(v); }

FLOAT_UNARY_ROWS(UNARY)
