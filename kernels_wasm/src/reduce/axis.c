// Along one axis of any element type: integer reductions, positions of extremes, running sums, largest elements.
//
//   x  [outer, r, inner]  read       y  [outer, inner], a running sum [outer, r, inner]  written; no overlap
//
// A NaN counts as the extreme of an arg_max or arg_min and as the smallest of a top_k. The first of equals wins.
// Split by lines (outer * inner).
#include "simd.h"

#define FOR_EACH_LINE(X, Y, Y_LENGTH)                                             \
  for (int32_t i = begin; i < end; i++) {                                         \
    const int32_t outer = i / inner, column = i % inner;                          \
    const __typeof__(*(X)) *xp = (X) + outer * r * inner + column;                \
    __typeof__(*(Y)) *yp = (Y) + outer * (Y_LENGTH) * inner + column;

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

#define RUNNING_SUM(NAME, TYPE, WRAPPING)                                         \
  void NAME(const TYPE *restrict x, TYPE *restrict y, int32_t r, int32_t inner, int32_t exclusive, int32_t reversed, \
            int32_t begin, int32_t end) {                                         \
    FOR_EACH_LINE(x, y, r)                                                        \
      const int32_t step = reversed ? -inner : inner;                             \
      if (reversed) {                                                             \
        xp += (r - 1) * inner;                                                    \
        yp += (r - 1) * inner;                                                    \
      }                                                                           \
      WRAPPING sum = 0;                                                           \
      NO_UNROLL for (int32_t k = 0; k < r; k++, xp += step, yp += step) {         \
        const WRAPPING before = sum;                                              \
        sum += (WRAPPING)*xp;                                                     \
        *yp = (TYPE)(exclusive ? before : sum);                                   \
      }                                                                           \
    }                                                                             \
  }

// Rows only: inner is 1. The k best so far stand sorted in the result; a candidate sinks to its place.
#define TOP_K(NAME, TYPE, BELOW)                                                  \
  void NAME(const TYPE *restrict x, TYPE *restrict values, int32_t *restrict positions, int32_t r, int32_t k, \
            int32_t begin, int32_t end) {                                         \
    for (int32_t i = begin; i < end; i++) {                                       \
      const TYPE *row = x + i * r;                                                \
      TYPE *v = values + i * k;                                                   \
      int32_t *p = positions + i * k, held = 0;                                   \
      for (int32_t j = 0; j < r; j++) {                                           \
        const TYPE b = row[j];                                                    \
        int32_t at = held;                                                        \
        for (; at > 0; at--) {                                                    \
          const TYPE a = v[at - 1];                                               \
          if (!(BELOW)) break;                                                    \
          if (at < k) {                                                           \
            v[at] = a;                                                            \
            p[at] = p[at - 1];                                                    \
          }                                                                       \
        }                                                                         \
        if (at < k) {                                                             \
          v[at] = b;                                                              \
          p[at] = j;                                                              \
          held += held < k;                                                       \
        }                                                                         \
      }                                                                           \
    }                                                                             \
  }

#define INTEGERS(PREFIX, TYPE, UNSIGNED, LOWEST, HIGHEST)                         \
  REDUCE(PREFIX##_reduce_max, TYPE, LOWEST, b > a ? b : a)                        \
  REDUCE(PREFIX##_reduce_min, TYPE, HIGHEST, b < a ? b : a)                       \
  REDUCE(PREFIX##_reduce_product, TYPE, 1, (UNSIGNED)a * (UNSIGNED)b)             \
  REDUCE(PREFIX##_reduce_sum, TYPE, 0, (UNSIGNED)a + (UNSIGNED)b)                 \
  ARG(PREFIX##_arg_max, TYPE, b > a)                                              \
  ARG(PREFIX##_arg_min, TYPE, b < a)                                              \
  RUNNING_SUM(PREFIX##_cumulative_sum, TYPE, UNSIGNED)                            \
  TOP_K(PREFIX##_top_k, TYPE, a < b)

INTEGERS(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
INTEGERS(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
REDUCE(b8_reduce_all, uint8_t, 1, a & (b != 0))
REDUCE(b8_reduce_any, uint8_t, 0, a | (b != 0))
ARG(f32_arg_max, float, b > a || (b != b && a == a))
ARG(f32_arg_min, float, b < a || (b != b && a == a))
RUNNING_SUM(f32_cumulative_sum, float, float)
TOP_K(f32_top_k, float, a < b || (a != a && b == b))
