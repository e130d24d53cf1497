// Walks the rows of a loop nest over strided operands, in row-major order.
//
// A nest is described by int32 words: rank (1 to WALK_MAX_RANK), shape[rank], then for each operand
// strides[rank]. Counts and strides are in elements; a stride may be 0 (broadcast) or negative.
#pragma once

#include "simd.h"

typedef struct {
  const int32_t *shape, *strides;
  int32_t rank, operands;
  int32_t inner;                     // elements of a row
  int32_t column;                    // where in the row the walk stands: 0 except in its first row
  int32_t offset[WALK_MAX_OPERANDS];     // of the row's element at `column`
  int32_t index[WALK_MAX_RANK];
} Walk;

// The inner stride of an operand.
INLINE int32_t walk_step(const Walk *w, int32_t operand) { return w->strides[operand * w->rank + w->rank - 1]; }

// What an operand's rows lie apart. Needs: rank > 1, or one row only.
INLINE int32_t walk_row_step(const Walk *w, int32_t operand) {
  return w->rank > 1 ? w->strides[operand * w->rank + w->rank - 2] : 0;
}

// Stands on the element with this row-major number.
static __attribute__((noinline)) void walk_start(Walk *w, const int32_t *nest, int32_t operands, int32_t element) {
  w->rank = nest[0];
  w->operands = operands;
  w->shape = nest + 1;
  w->strides = w->shape + w->rank;
  w->inner = w->shape[w->rank - 1];
  for (int32_t k = 0; k < operands; k++) w->offset[k] = 0;
  for (int32_t d = w->rank - 1; d >= 0; d--) {
    const int32_t n = w->shape[d];
    w->index[d] = element % n;
    element /= n;
    for (int32_t k = 0; k < operands; k++) w->offset[k] += w->index[d] * w->strides[k * w->rank + d];
  }
  w->column = w->index[w->rank - 1];
}

static __attribute__((noinline)) void walk_turn(Walk *w) {
  const int32_t rank = w->rank;
  for (int32_t k = 0; k < w->operands; k++) w->offset[k] -= w->column * walk_step(w, k);
  w->column = 0;
  for (int32_t d = rank - 2; d >= 0; d--) {
    const int32_t whole = ++w->index[d] == w->shape[d];
    const int32_t steps = whole ? 1 - w->shape[d] : 1;
    for (int32_t k = 0; k < w->operands; k++) w->offset[k] += steps * w->strides[k * rank + d];
    if (!whole) return;
    w->index[d] = 0;
  }
}

// Moves to the start of the next row. Two dimensions, the most frequent nest, need no counting.
INLINE void walk_next_row(Walk *w) {
  if (LIKELY(w->rank == 2)) {
    for (int32_t k = 0; k < w->operands; k++) w->offset[k] += w->strides[2 * k] - w->column * w->strides[2 * k + 1];
    w->column = 0;
  } else {
    walk_turn(w);
  }
}

// Elements of the current row that stand before element `end`, when the walk is at element `at`.
INLINE int32_t walk_count(const Walk *w, int32_t at, int32_t end) {
  const int32_t rest = w->inner - w->column;
  return rest < end - at ? rest : end - at;
}

// Rows of `n` elements ahead of a walk at element `at`, this one included, that lie as far apart from each other and end
// before `end`. After them the walk is to be moved by walk_skip_rows and walk_next_row.
INLINE int32_t walk_even_rows(const Walk *w, int32_t at, int32_t end, int32_t n) {
  if (n < w->inner || w->rank == 1) return 1;
  const int32_t rows = w->shape[w->rank - 2] - w->index[w->rank - 2];
  return (int64_t)rows * n <= end - at ? rows : (end - at) / n;
}

INLINE void walk_skip_rows(Walk *w, int32_t rows) {
  const int32_t d = w->rank - 2;
  if (rows == 0) return;
  w->index[d] += rows;
  for (int32_t k = 0; k < w->operands; k++) w->offset[k] += rows * w->strides[k * w->rank + d];
}
