// Comparisons and logic of two tensors that broadcast together: y = 1 where true, else 0.
//
//   a, b  float32, int32, int64 or bytes   read       y  bytes, dense  written
//   nest  int32   the loop nest of include/walk.h over a and b
//
// int32 compares serve the narrower integers after widening. In the logical ones any byte but 0 is true.
// Split by elements of y.
#include "walk.h"

#define COMPARE(NAME, TYPE, CONDITION)                                                                     \
  void NAME(const TYPE *a_from, const TYPE *b_from, uint8_t *to, const int32_t *nest, int32_t begin, int32_t end) { \
    Walk w;                                                                                                \
    walk_start(&w, nest, 2, begin);                                                                        \
    const int32_t a_step = walk_step(&w, 0), b_step = walk_step(&w, 1);                                    \
    for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {                                       \
      n = walk_count(&w, i, end);                                                                          \
      const TYPE *ap = a_from + w.offset[0], *bp = b_from + w.offset[1];                                   \
      NO_UNROLL for (int32_t j = 0; j < n; j++, ap += a_step, bp += b_step) {                              \
        const TYPE a = *ap, b = *bp;                                                                       \
        to[i + j] = CONDITION;                                                                             \
      }                                                                                                    \
    }                                                                                                      \
  }

#define COMPARES(PREFIX, TYPE)                   \
  COMPARE(PREFIX##_equal, TYPE, a == b)          \
  COMPARE(PREFIX##_greater, TYPE, a > b)         \
  COMPARE(PREFIX##_greater_equal, TYPE, a >= b)  \
  COMPARE(PREFIX##_less, TYPE, a < b)            \
  COMPARE(PREFIX##_less_equal, TYPE, a <= b)     \
  COMPARE(PREFIX##_not_equal, TYPE, a != b)

COMPARES(f32, float)
COMPARES(i32, int32_t)
COMPARES(i64, int64_t)
COMPARE(b8_and, uint8_t, (a != 0) & (b != 0))
COMPARE(b8_or, uint8_t, (a != 0) | (b != 0))
COMPARE(b8_xor, uint8_t, (a != 0) ^ (b != 0))
