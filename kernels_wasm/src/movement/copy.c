// Strided copies, fills and choices of elements of 1, 2, 4 or 8 bytes: transpose, slice, expand, tile, reverse,
// concat, pad, depth_to_space and their kin are made of these.
//
//   x     read       y  written where the nest points
//   nest  int32      the loop nest of include/walk.h: strides of x, then of y (where: condition, x, z; y is dense)
//
// By hand: a described choice (where) has another text for each way in which its inputs are repeated; a pad is a fill and
// copies here, described it compares every position.
// Needs: a copy inside one tensor reads no element that it writes. Units: elements of the nest (of y).
#include "bytes.h"
#include "walk.h"

#define COPY(PREFIX, TYPE)                                                                                \
  void PREFIX##_copy(const TYPE *x, TYPE *y, const int32_t *nest, int32_t begin, int32_t end) {           \
    Walk w;                                                                                               \
    walk_start(&w, nest, 2, begin);                                                                       \
    const int32_t x_step = walk_step(&w, 0), y_step = walk_step(&w, 1);                                   \
    for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {                                      \
      n = walk_count(&w, i, end);                                                                         \
      const TYPE *from = x + w.offset[0];                                                                 \
      TYPE *to = y + w.offset[1];                                                                         \
      if (x_step == 1 && y_step == 1) {                                                                   \
        const int32_t rows = walk_even_rows(&w, i, end, n), size = (int32_t)sizeof(TYPE);                 \
        copy_rows((uint8_t *)to, (const uint8_t *)from, rows, n * size, walk_row_step(&w, 1) * size,      \
                  walk_row_step(&w, 0) * size);                                                           \
        n *= rows;                                                                                        \
        walk_skip_rows(&w, rows - 1);                                                                     \
        continue;                                                                                         \
      }                                                                                                   \
      NO_UNROLL for (int32_t j = 0; j < n; j++, from += x_step, to += y_step) *to = *from;                \
    }                                                                                                     \
  }

// The fill value of 8-byte elements comes as two halves; narrower ones use the low bits.
#define FILL(PREFIX, TYPE)                                                                                \
  void PREFIX##_fill(TYPE *y, int32_t low, int32_t high, int32_t begin, int32_t end) {                    \
    const TYPE value = (TYPE)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);                            \
    for (int32_t i = begin; i < end; i++) y[i] = value;                                                   \
  }

#define WHERE(PREFIX, TYPE)                                                                               \
  void PREFIX##_where(const uint8_t *c, const TYPE *x, const TYPE *z, TYPE *y, const int32_t *nest,       \
                      int32_t begin, int32_t end) {                                                       \
    Walk w;                                                                                               \
    walk_start(&w, nest, 3, begin);                                                                       \
    const int32_t c_step = walk_step(&w, 0), x_step = walk_step(&w, 1), z_step = walk_step(&w, 2);        \
    for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {                                      \
      n = walk_count(&w, i, end);                                                                         \
      const uint8_t *cp = c + w.offset[0];                                                                \
      const TYPE *xp = x + w.offset[1], *zp = z + w.offset[2];                                            \
      NO_UNROLL for (int32_t j = 0; j < n; j++, cp += c_step, xp += x_step, zp += z_step) {               \
        const TYPE yes = *xp, no = *zp;                                                                   \
        y[i + j] = *cp ? yes : no;                                                                        \
      }                                                                                                   \
    }                                                                                                     \
  }

#define FAMILY(PREFIX, TYPE) COPY(PREFIX, TYPE) FILL(PREFIX, TYPE) WHERE(PREFIX, TYPE)
FAMILY(b8, uint8_t)
FAMILY(b16, uint16_t)
FAMILY(b32, uint32_t)
FAMILY(b64, uint64_t)
