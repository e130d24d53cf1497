// Writes at positions that are data. A negative position counts from the end; one that still lies outside moves to the
// nearest element, so nothing outside y is touched.
//
//   scatter_elements  y [outer, size, inner] changed       positions, updates [outer, count, inner]
//   scatter_nd        y changed                            positions [count, depth], updates [count, row]
//   axes              int32: depth, the sizes of the `depth` axes, their strides in rows
//
// row is in bytes (scatter_nd's sums: in elements). In order: the last update of a position stays.
// By hand: these walk the updates once; described, each element of y would look through all of them.
// Needs: y does not overlap updates.
// Units: none, one thread does all.
#include "bytes.h"

INLINE int32_t inside(int32_t position, int32_t size) {
  const int32_t p = position < 0 ? position + size : position;
  return p < 0 ? 0 : p >= size ? size - 1 : p;
}

// The row that one position of `depth` numbers names.
INLINE int32_t place_of(const int32_t *position, const int32_t *axes, int32_t depth) {
  int32_t row = 0;
  for (int32_t d = 0; d < depth; d++) row += inside(position[d], axes[1 + d]) * axes[1 + depth + d];
  return row;
}

void b8_scatter_nd(const int32_t *restrict positions, const uint8_t *restrict updates, uint8_t *restrict y,
                   const int32_t *restrict axes, int32_t depth, int32_t count, int32_t row) {
  for (int32_t i = 0; i < count; i++) {
    copy_bytes(y + place_of(positions + i * depth, axes, depth) * row, updates + i * row, row);
  }
}

#define SCATTER_ND_ADD(NAME, TYPE)                                                                      \
  void NAME(const int32_t *restrict positions, const TYPE *restrict updates, TYPE *restrict y,          \
            const int32_t *restrict axes, int32_t depth, int32_t count, int32_t row) {                  \
    for (int32_t i = 0; i < count; i++) {                                                               \
      TYPE *to = y + place_of(positions + i * depth, axes, depth) * row;                                \
      for (int32_t j = 0; j < row; j++) to[j] += updates[i * row + j];                                  \
    }                                                                                                   \
  }
SCATTER_ND_ADD(f32_scatter_nd_add, float)
SCATTER_ND_ADD(i32_scatter_nd_add, uint32_t)
SCATTER_ND_ADD(i64_scatter_nd_add, uint64_t)

#define SCATTER(PREFIX, TYPE)                                                                          \
  void PREFIX##_scatter_elements(const int32_t *restrict positions, const TYPE *restrict updates,       \
                                 TYPE *restrict y, int32_t size, int32_t count, int32_t inner, int32_t n) { \
    for (int32_t i = 0; i < n; i++) {                                                                   \
      y[(i / inner / count * size + inside(positions[i], size)) * inner + i % inner] = updates[i];      \
    }                                                                                                   \
  }
SCATTER(b8, uint8_t)
SCATTER(b16, uint16_t)
SCATTER(b32, uint32_t)
SCATTER(b64, uint64_t)
