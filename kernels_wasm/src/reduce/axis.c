// Along one axis: integer reductions, and positions of extremes of any element type.
//
//   x  [outer, r, inner]  read       y  [outer, inner]  written; no overlap
//
// A NaN counts as the extreme of an arg_max or arg_min. The first of equals wins.
// Needs: r is at least 1.  Units: lines, outer * inner.
#include "lines.h"

#define REDUCE(NAME, TYPE, START, JOIN)                                           \
  void NAME(const TYPE *restrict x, TYPE *restrict y, int32_t r, int32_t inner, int32_t begin, int32_t end) { \
    FOR_EACH_LINE(x, y, 1)                                                        \
      TYPE a = START;                                                             \
      NO_UNROLL for (int32_t k = 0; k < r; k++, xp += inner) {                    \
        const TYPE b = *xp;                                                       \
        a = (TYPE)(JOIN);                                                         \
      }                                                                           \
      *yp = a;                                                                    \
    }                                                                             \
  }

#define ARG(NAME, TYPE, BETTER)                                                   \
  void NAME(const TYPE *restrict x, int32_t *restrict y, int32_t r, int32_t inner, int32_t begin, int32_t end) { \
    FOR_EACH_LINE(x, y, 1)                                                        \
      TYPE a = *xp;                                                               \
      int32_t best = 0;                                                           \
      NO_UNROLL for (int32_t k = 1; k < r; k++) {                                 \
        const TYPE b = xp[k * inner];                                             \
        if (BETTER) {                                                             \
          a = b;                                                                  \
          best = k;                                                               \
        }                                                                         \
      }                                                                           \
      *yp = best;                                                                 \
    }                                                                             \
  }

#define INTEGERS(PREFIX, TYPE, UNSIGNED, LOWEST, HIGHEST)                         \
  REDUCE(PREFIX##_reduce_max, TYPE, LOWEST, b > a ? b : a)                        \
  REDUCE(PREFIX##_reduce_min, TYPE, HIGHEST, b < a ? b : a)                       \
  REDUCE(PREFIX##_reduce_product, TYPE, 1, (UNSIGNED)a * (UNSIGNED)b)             \
  REDUCE(PREFIX##_reduce_sum, TYPE, 0, (UNSIGNED)a + (UNSIGNED)b)                 \
  ARG(PREFIX##_arg_max, TYPE, b > a)                                              \
  ARG(PREFIX##_arg_min, TYPE, b < a)

INTEGERS(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
INTEGERS(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
REDUCE(b8_reduce_all, uint8_t, 1, a & (b != 0))
REDUCE(b8_reduce_any, uint8_t, 0, a | (b != 0))
ARG(f32_arg_max, float, b > a || (b != b && a == a))
ARG(f32_arg_min, float, b < a || (b != b && a == a))
