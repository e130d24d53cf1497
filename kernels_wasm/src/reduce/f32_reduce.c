// Reductions of float32 along one axis: y[o, i] = end(join over k of take(x[o, k, i])), by the operators' rows.
//
//   x  [outer, r, inner]  read, up to 12 bytes past its end       y  [outer, inner]  written; no overlap
//   count  what a mean divides by, as a float
//
// Needs: y does not overlap x.
// Units: results, outer * inner.
#include "formulas.h"
#include "lanes.h"
#include "math.h"

INLINE v4f times(v4f a, v4f b) { return a * b; }

// TAKE sees an element as x, END the joined value as x.
#define REDUCE(NAME, START, TAKE, JOIN, END)                                                            \
  INLINE v4f NAME##_take(v4f x) { return TAKE; }                                                        \
  INLINE v4f NAME##_end(v4f x, float count) {                                                           \
    (void)count;                                                                                        \
    return END;                                                                                         \
  }                                                                                                     \
  static v4f NAME##_row(const float *row, int32_t r) {                                                  \
    const v4f start = v4f_splat(START);                                                                 \
    v4f a = start, b = start, c = start, d = start;                                                     \
    int32_t k = 0;                                                                                      \
    NO_UNROLL for (; k + 16 <= r; k += 16) {                                                            \
      a = JOIN(a, NAME##_take(v4f_load(row + k)));                                                      \
      b = JOIN(b, NAME##_take(v4f_load(row + k + 4)));                                                  \
      c = JOIN(c, NAME##_take(v4f_load(row + k + 8)));                                                  \
      d = JOIN(d, NAME##_take(v4f_load(row + k + 12)));                                                 \
    }                                                                                                   \
    NO_UNROLL for (; k < r; k += 4) a = JOIN(a, v4f_first_lanes(NAME##_take(v4f_load(row + k)), r - k, start)); \
    return FOLD(JOIN, JOIN(JOIN(a, b), JOIN(c, d)));                                                    \
  }                                                                                                     \
  /* `columns` neighbouring results, any number */                                                      \
  static void NAME##_columns(const float *x, float *y, int32_t r, int32_t inner, int32_t columns, float count) { \
    const v4f start = v4f_splat(START);                                                                 \
    int32_t i = 0;                                                                                      \
    for (; i + 16 <= columns; i += 16) {                                                                \
      v4f a = start, b = start, c = start, d = start;                                                   \
      const float *p = x + i;                                                                           \
      NO_UNROLL for (int32_t k = 0; k < r; k++, p += inner) {                                           \
        a = JOIN(a, NAME##_take(v4f_load(p)));                                                          \
        b = JOIN(b, NAME##_take(v4f_load(p + 4)));                                                      \
        c = JOIN(c, NAME##_take(v4f_load(p + 8)));                                                      \
        d = JOIN(d, NAME##_take(v4f_load(p + 12)));                                                     \
      }                                                                                                 \
      v4f_store(y + i, NAME##_end(a, count));                                                           \
      v4f_store(y + i + 4, NAME##_end(b, count));                                                       \
      v4f_store(y + i + 8, NAME##_end(c, count));                                                       \
      v4f_store(y + i + 12, NAME##_end(d, count));                                                      \
    }                                                                                                   \
    for (; i < columns; i += 4) {                                                                       \
      v4f a = start;                                                                                    \
      const float *p = x + i;                                                                           \
      NO_UNROLL for (int32_t k = 0; k < r; k++, p += inner) a = JOIN(a, NAME##_take(v4f_load(p)));      \
      a = NAME##_end(a, count);                                                                         \
      v4f_store_lanes(y + i, a, columns - i);                                                           \
    }                                                                                                   \
  }                                                                                                     \
  void f32_##NAME(const float *restrict x, float *restrict y, int32_t r, int32_t inner, float count, \
                         int32_t begin, int32_t end) {                                                  \
    for (int32_t i = begin, n; i < end; i += n) {                                                       \
      n = 1;                                                                                            \
      if (inner == 1) {                                                                                 \
        y[i] = NAME##_end(NAME##_row(x + i * r, r), count)[0];                                          \
        continue;                                                                                       \
      }                                                                                                 \
      const int32_t column = i % inner, rest = inner - column;                                          \
      n = rest < end - i ? rest : end - i;                                                              \
      NAME##_columns(x + i / inner * r * inner + column, y + i, r, inner, n, count);                    \
    }                                                                                                   \
  }

FLOAT_REDUCE_ROWS(REDUCE)
