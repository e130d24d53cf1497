// Comparisons and logic of two tensors that broadcast together: y = 1 where true, else 0.
//
//   a, b  float32, int32, int64 or bytes   read       y  bytes, dense  written
//   nest  int32   the loop nest of include/walk.h over a and b
//
// int32 compares serve the narrower integers after widening. In the logical ones any byte but 0 is true.
// Needs: y overlaps neither operand.
// Units: elements of y.
#include "formulas.h"
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

COMPARISON_ROWS(COMPARE, f32, float)
COMPARISON_ROWS(COMPARE, i32, int32_t)
COMPARISON_ROWS(COMPARE, i64, int64_t)
LOGIC_ROWS(COMPARE, b8, uint8_t)
