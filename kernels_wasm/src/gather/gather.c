// Reads and writes at positions that are data. A negative position counts from the end; one that still lies outside
// moves to the nearest element, so nothing outside x or y is touched.
//
//   gather            x [batch, outer, size, row]          positions [batch, count]   -> y [batch, outer, count, row]
//   gather_elements   x [outer, size, inner]               positions [outer, count, inner] -> y like positions
//   gather_nd         x [batch, batch_bytes]               positions [batch, count, depth] -> y [batch, count, row]
//   scatter_elements  y [outer, size, inner] changed       positions, updates [outer, count, inner]
//   scatter_nd        y changed                            positions [count, depth], updates [count, row]
//   axes              int32: depth, the sizes of the `depth` axes, their strides in rows
//
// row is in bytes (scatter_nd's sums: in elements). Scatters run in order: the last update of a position stays.
// Needs: y overlaps neither x nor updates.
// Units: rows of y (gather, gather_nd), elements of y (gather_elements); scatters have none, one thread does all.
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

void b8_gather(const uint8_t *restrict x, const int32_t *restrict positions, uint8_t *restrict y, int32_t outer,
               int32_t size, int32_t count, int32_t row, int32_t begin, int32_t end) {
  for (int32_t i = begin, n; i < end; i += n) {  // the rows of a line
    const int32_t line = i / count, first = i - line * count;
    const int32_t *position = positions + line / outer * count + first;
    const uint8_t *from = x + line * size * row;
    uint8_t *to = y + i * row;
    n = count - first < end - i ? count - first : end - i;
    if (row == 1) {  // a table of bytes
      for (int32_t j = 0; j < n; j++) to[j] = from[inside(position[j], size)];
    } else {
      for (int32_t j = 0; j < n; j++, to += row) copy_bytes(to, from + inside(position[j], size) * row, row);
    }
  }
}

void b8_gather_nd(const uint8_t *restrict x, const int32_t *restrict positions, uint8_t *restrict y,
                  const int32_t *restrict axes, int32_t depth, int32_t count, int32_t batch_bytes, int32_t row,
                  int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end; i++) {
    const uint8_t *from = x + i / count * batch_bytes + place_of(positions + i * depth, axes, depth) * row;
    copy_bytes(y + i * row, from, row);
  }
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

#define ELEMENTS(PREFIX, TYPE)                                                                          \
  void PREFIX##_gather_elements(const TYPE *restrict x, const int32_t *restrict positions, TYPE *restrict y, \
                                int32_t size, int32_t count, int32_t inner, int32_t begin, int32_t end) { \
    for (int32_t i = begin; i < end; i++) {                                                             \
      y[i] = x[(i / inner / count * size + inside(positions[i], size)) * inner + i % inner];            \
    }                                                                                                   \
  }                                                                                                     \
  void PREFIX##_scatter_elements(const int32_t *restrict positions, const TYPE *restrict updates,       \
                                 TYPE *restrict y, int32_t size, int32_t count, int32_t inner, int32_t n) { \
    for (int32_t i = 0; i < n; i++) {                                                                   \
      y[(i / inner / count * size + inside(positions[i], size)) * inner + i % inner] = updates[i];      \
    }                                                                                                   \
  }
ELEMENTS(b8, uint8_t)
ELEMENTS(b16, uint16_t)
ELEMENTS(b32, uint32_t)
ELEMENTS(b64, uint64_t)
