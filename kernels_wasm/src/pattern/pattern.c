// Patterns of positions: one-hot marks and triangles of matrices.
//
//   one_hot     x [outer, inner] int32 read; y [outer, depth, inner], already filled with "off", gets `on` where the
//               middle axis equals x; an x outside 0..depth-1 marks nothing. Units: elements of x.
//   triangular  x, y [matrices * rows, columns]; keeps columns with column - row >= diagonal (upper) or <= diagonal,
//               zeroes the rest. Units: rows.
//
// Needs: y does not overlap x.
#include "simd.h"

#define PATTERN(PREFIX, TYPE)                                                                           \
  void PREFIX##_one_hot(const int32_t *restrict x, TYPE *restrict y, int32_t depth, int32_t inner, int32_t low, \
                        int32_t high, int32_t begin, int32_t end) {                                     \
    const TYPE on = (TYPE)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);                             \
    for (int32_t i = begin; i < end; i++) {                                                             \
      if (x[i] >= 0 && x[i] < depth) y[(i / inner * depth + x[i]) * inner + i % inner] = on;            \
    }                                                                                                   \
  }                                                                                                     \
  void PREFIX##_triangular(const TYPE *restrict x, TYPE *restrict y, int32_t rows, int32_t columns, int32_t upper, \
                           int32_t diagonal, int32_t begin, int32_t end) {                              \
    for (int32_t i = begin; i < end; i++) {                                                             \
      const int32_t edge = i % rows + diagonal;                                                         \
      NO_UNROLL for (int32_t j = 0; j < columns; j++) {                                                 \
        const int32_t kept = upper ? j >= edge : j <= edge;                                             \
        y[i * columns + j] = kept ? x[i * columns + j] : 0;                                             \
      }                                                                                                 \
    }                                                                                                   \
  }
PATTERN(b8, uint8_t)
PATTERN(b16, uint16_t)
PATTERN(b32, uint32_t)
PATTERN(b64, uint64_t)
