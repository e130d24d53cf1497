// Along one axis: integer reductions, and positions of extremes of any element type.
//
//   x  [outer, r, inner]  read       y  [outer, inner]  written; no overlap
//
// A NaN counts as the extreme of an arg_max or arg_min. The first of equals wins.
// Needs: r is at least 1.  Units: lines, outer * inner.
#include "lanes.h"
#include "lines.h"

#define REDUCE(NAME, TYPE, START, JOIN)                                           \
  void NAME(const TYPE *restrict x, TYPE *restrict y, int32_t r, int32_t inner, int32_t begin, int32_t end) { \
    FOR_EACH_LINE(x, y, 1)                                                        \
      TYPE a = START;                                                             \
      NO_UNROLL for (int32_t k = 0; k < r; k++, xp += inner) {                    \
        const TYPE b = *xp;                                                       \
        a = (TYPE)(JOIN);                                                         \
      }                                                                           \
      *yp = a;                                                                    \
    }                                                                             \
  }

#if SIMD
// The first of the largest, or the least, of r >= 4 neighbours; -1 if one of them is a NaN.
INLINE int32_t first_best(const float *x, int32_t r, const int least) {
  v4f best = v4f_load(x);
  v4i bad = best != best;
  NO_UNROLL for (int32_t k = 4; k < r; k += 4) {
    const v4f v = v4f_load(x + (k + 4 <= r ? k : r - 4));
    best = least ? v4f_min(v, best) : v4f_max(v, best);
    bad |= v != v;
  }
  if (wasm_v128_any_true((v128_t)bad)) return -1;
  best = least ? FOLD(v4f_min, best) : FOLD(v4f_max, best);
  for (int32_t k = 0;; k += 4) {
    const uint32_t found = wasm_i32x4_bitmask((v128_t)(v4f_load(x + k) == best));
    if (found) return k + __builtin_ctz(found);
  }
}

// Of four lines side by side, NaN or not.
INLINE void four_best(const float *x, int32_t *y, int32_t r, int32_t inner, const int least) {
  v4f best = v4f_load(x);
  v4i at = v4i_splat(0), k = at;
  NO_UNROLL for (int32_t i = 1; i < r; i++) {
    const v4f v = v4f_load(x += inner);
    const v4i better = (least ? v < best : v > best) | ((v != v) & (best == best));
    k += 1;
    best = v4f_select(better, v, best);
    at = v4i_select(better, k, at);
  }
  v4i_store(y, at);
}

#endif

#define ARG(NAME, TYPE, BETTER)                                                   \
  void NAME(const TYPE *restrict x, int32_t *restrict y, int32_t r, int32_t inner, int32_t begin, int32_t end) { \
    FOR_EACH_LINE(x, y, 1)                                                        \
      TYPE a = *xp;                                                               \
      int32_t best = 0;                                                           \
      NO_UNROLL for (int32_t k = 1; k < r; k++) {                                 \
        const TYPE b = xp[k * inner];                                             \
        if (BETTER) {                                                             \
          a = b;                                                                  \
          best = k;                                                               \
        }                                                                         \
      }                                                                           \
      *yp = best;                                                                 \
    }                                                                             \
  }

#define INTEGERS(PREFIX, TYPE, UNSIGNED, LOWEST, HIGHEST)                         \
  REDUCE(PREFIX##_reduce_max, TYPE, LOWEST, b > a ? b : a)                        \
  REDUCE(PREFIX##_reduce_min, TYPE, HIGHEST, b < a ? b : a)                       \
  REDUCE(PREFIX##_reduce_product, TYPE, 1, (UNSIGNED)a * (UNSIGNED)b)             \
  REDUCE(PREFIX##_reduce_sum, TYPE, 0, (UNSIGNED)a + (UNSIGNED)b)                 \
  ARG(PREFIX##_arg_max, TYPE, b > a)                                              \
  ARG(PREFIX##_arg_min, TYPE, b < a)

INTEGERS(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
INTEGERS(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
REDUCE(b8_reduce_all, uint8_t, 1, a & (b != 0))
REDUCE(b8_reduce_any, uint8_t, 0, a | (b != 0))

// A line's position of the largest, or the least; the first NaN if there is one.
INLINE int32_t one_best(const float *x, int32_t r, int32_t inner, const int least) {
  float a = *x;
  int32_t best = 0;
  NO_UNROLL for (int32_t k = 1; k < r; k++) {
    const float b = x[k * inner];
    if ((least ? b < a : b > a) || (b != b && a == a)) {
      a = b;
      best = k;
    }
  }
  return best;
}

INLINE void float_lines(const float *x, int32_t *y, int32_t r, int32_t inner, int32_t begin, int32_t end,
                        const int least) {
  for (int32_t i = begin; i < end;) {
    const int32_t outer = inner == 1 ? i : i / inner, column = i - outer * inner;
    const float *line = x + outer * r * inner + column;
#if SIMD
    if (inner == 1 && r >= 8) {
      const int32_t best = first_best(line, r, least);
      y[i] = best < 0 ? one_best(line, r, 1, least) : best;
      i++;
      continue;
    }
    if (column + 4 <= inner && i + 4 <= end) {
      four_best(line, y + i, r, inner, least);
      i += 4;
      continue;
    }
#endif
    y[i++] = one_best(line, r, inner, least);
  }
}

#define FLOAT_ARG(NAME, LEAST)                                                                                       \
  void NAME(const float *restrict x, int32_t *restrict y, int32_t r, int32_t inner, int32_t begin, int32_t end) {    \
    float_lines(x, y, r, inner, begin, end, LEAST);                                                                  \
  }
FLOAT_ARG(f32_arg_max, 0)
FLOAT_ARG(f32_arg_min, 1)
