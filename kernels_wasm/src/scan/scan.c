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

// Rows only: inner is 1. The k best so far are a heap in the result, the worst of them on top; sorted at the end.
#define TOP_K(NAME, TYPE, BELOW)                                                  \
  INLINE int NAME##_below(TYPE a, TYPE b) { return BELOW; }                       \
  INLINE int NAME##_worse(TYPE a, int32_t p, TYPE b, int32_t q) {                 \
    return NAME##_below(a, b) || (!NAME##_below(b, a) && p > q);                  \
  }                                                                               \
  static void NAME##_sink(TYPE *v, int32_t *p, int32_t size, int32_t at, TYPE b, int32_t q) { \
    for (int32_t child; (child = 2 * at + 1) < size; at = child) {                \
      child += child + 1 < size && NAME##_worse(v[child + 1], p[child + 1], v[child], p[child]); \
      if (!NAME##_worse(v[child], p[child], b, q)) break;                         \
      v[at] = v[child];                                                           \
      p[at] = p[child];                                                           \
    }                                                                             \
    v[at] = b;                                                                    \
    p[at] = q;                                                                    \
  }                                                                               \
  void NAME(const TYPE *restrict x, TYPE *restrict values, int32_t *restrict positions, int32_t r, int32_t k, \
            int32_t begin, int32_t end) {                                         \
    for (int32_t i = begin; i < end && k > 0; i++) {                              \
      const TYPE *row = x + i * r;                                                \
      TYPE *v = values + i * k;                                                   \
      int32_t *p = positions + i * k;                                             \
      NO_UNROLL for (int32_t j = 0; j < k; j++) {                                 \
        v[j] = row[j];                                                            \
        p[j] = j;                                                                 \
      }                                                                           \
      for (int32_t at = k / 2 - 1; at >= 0; at--) NAME##_sink(v, p, k, at, v[at], p[at]); \
      for (int32_t j = k; j < r; j++) {                                           \
        if (NAME##_below(v[0], row[j])) NAME##_sink(v, p, k, 0, row[j], j);       \
      }                                                                           \
      for (int32_t last = k - 1; last > 0; last--) {                              \
        const TYPE b = v[last];                                                   \
        const int32_t q = p[last];                                                \
        v[last] = v[0];                                                           \
        p[last] = p[0];                                                           \
        NAME##_sink(v, p, last, 0, b, q);                                         \
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
