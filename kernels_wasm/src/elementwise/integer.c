// Elementwise integer arithmetic: wraps on overflow, never traps (x / 0 gives 0).
//
//   x, a, b  read       y  dense  written; may be an operand of its shape
//   nest     int32      the loop nest of include/walk.h over a and b
//   bounds   two elements: lowest, highest
//
// Narrower integers are widened to int32 first. Needs: y overlaps an operand only where it is that operand.
// Units: elements of y.
#include "formulas.h"
#include "walk.h"

// Primitives of the formulas.
#define LARGER(a, b) ((a) < (b) ? (b) : (a))
#define MAGNITUDE(UNSIGNED, x) ((x) < 0 ? 0 - (UNSIGNED)(x) : (UNSIGNED)(x))
#define SIGN(x) (((x) > 0) - ((x) < 0))
#define SMALLER(a, b) ((b) < (a) ? (b) : (a))

#define UNARY(NAME, TYPE, FORMULA)                                                \
  void NAME(const TYPE *from, TYPE *to, int32_t begin, int32_t end) {             \
    NO_UNROLL for (int32_t i = begin; i < end; i++) {                             \
      const TYPE x = from[i];                                                     \
      to[i] = (TYPE)(FORMULA);                                                    \
    }                                                                             \
  }

#define CLAMP(NAME, TYPE)                                                         \
  void NAME(const TYPE *from, TYPE *to, const TYPE *bounds, int32_t begin, int32_t end) { \
    const TYPE lo = bounds[0], hi = bounds[1];                                    \
    NO_UNROLL for (int32_t i = begin; i < end; i++) {                             \
      const TYPE x = from[i] < lo ? lo : from[i];                                 \
      to[i] = x > hi ? hi : x;                                                    \
    }                                                                             \
  }

#define BINARY(NAME, TYPE, FORMULA)                                               \
  void NAME(const TYPE *a_from, const TYPE *b_from, TYPE *to, const int32_t *nest, int32_t begin, int32_t end) { \
    Walk w;                                                                       \
    walk_start(&w, nest, 2, begin);                                               \
    const int32_t a_step = walk_step(&w, 0), b_step = walk_step(&w, 1);           \
    for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {              \
      n = walk_count(&w, i, end);                                                 \
      const TYPE *ap = a_from + w.offset[0], *bp = b_from + w.offset[1];          \
      NO_UNROLL for (int32_t j = 0; j < n; j++, ap += a_step, bp += b_step) {     \
        const TYPE a = *ap, b = *bp;                                              \
        to[i + j] = (TYPE)(FORMULA);                                              \
      }                                                                           \
    }                                                                             \
  }

// Arithmetic in the unsigned type wraps; the signed one only divides and compares.
#define FAMILY(PREFIX, TYPE, UNSIGNED)                                            \
  static TYPE PREFIX##_quotient(TYPE a, TYPE b) {                                 \
    return b == 0 ? 0 : b == -1 ? (TYPE)(0 - (UNSIGNED)a) : a / b;                \
  }                                                                               \
  static TYPE PREFIX##_floor_quotient(TYPE a, TYPE b) {                           \
    const TYPE q = PREFIX##_quotient(a, b), r = (TYPE)((UNSIGNED)a - (UNSIGNED)q * (UNSIGNED)b); \
    return b != 0 && r != 0 && (r < 0) != (b < 0) ? q - 1 : q;                    \
  }                                                                               \
  static TYPE PREFIX##_modulo(TYPE a, TYPE b) {                                   \
    return b == 0 ? 0 : (TYPE)((UNSIGNED)a - (UNSIGNED)PREFIX##_floor_quotient(a, b) * (UNSIGNED)b); \
  }                                                                               \
  static TYPE PREFIX##_power(TYPE a, TYPE b) {                                    \
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;                \
    UNSIGNED y = 1, x = (UNSIGNED)a;                                              \
    for (; b; b >>= 1, x *= x) y *= b & 1 ? x : 1;                                \
    return (TYPE)y;                                                               \
  }                                                                               \
  INTEGER_UNARY_ROWS(UNARY, PREFIX, TYPE, UNSIGNED)                               \
  CLAMP(PREFIX##_clip, TYPE)                                                     \
  INTEGER_BINARY_ROWS(BINARY, PREFIX, TYPE, UNSIGNED)

FAMILY(i32, int32_t, uint32_t)
FAMILY(i64, int64_t, uint64_t)
CLAMP(u64_clip, uint64_t)
