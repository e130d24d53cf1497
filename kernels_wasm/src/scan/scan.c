// Along one axis of any element type: running sums and the largest elements.
//
//   x  [outer, r, inner]  read       y  [outer, r, inner], of a top_k values and positions [outer, k]  written
//   no overlap
//
// A NaN counts as the smallest of a top_k. The first of equals wins.
// Needs: r is at least 1.  Units: lines, outer * inner; inner is 1 for a top_k.
#include "lines.h"

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

#define INTEGERS(PREFIX, TYPE, UNSIGNED)                                          \
  RUNNING_SUM(PREFIX##_cumulative_sum, TYPE, UNSIGNED)                            \
  TOP_K(PREFIX##_top_k, TYPE, a < b)

INTEGERS(i32, int32_t, uint32_t)
INTEGERS(i64, int64_t, uint64_t)
RUNNING_SUM(f32_cumulative_sum, float, float)
TOP_K(f32_top_k, float, a < b || (a != a && b == b))
