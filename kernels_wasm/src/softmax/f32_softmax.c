// Softmax, its logarithm, and log(sum e^x), along one axis. The largest element is taken off first, so that
// nothing overflows. A NaN need not be the largest: it is in the sum.
//
//   x     [outer, r, inner]  read, up to 12 bytes past its end
//   y     [outer, r, inner]  written (log_sum_exp: [outer, inner]); no overlap
//   beta  factor of x
//
// Needs: y does not overlap x.
// Units: lines, outer * inner.
#include "lanes.h"
#include "math.h"

enum { SOFTMAX, LOG_SOFTMAX, LOG_SUM_EXP };

// One row of r neighbouring elements; y has one element for LOG_SUM_EXP.
INLINE void one_row(const float *x, float *y, int32_t r, float beta, int kind, const Exponents *c) {
  const v4f lowest = v4f_splat(-INFINITE);
  const int32_t whole = r & ~3, left = r & 3;
  v4f top = lowest, sum = v4f_splat(0.0f);
  NO_UNROLL for (int32_t k = 0; k < whole; k += 4) top = v4f_max(v4f_load(x + k), top);
  if (left) top = v4f_max(v4f_first_lanes(v4f_load(x + whole), left, lowest), top);
  top = FOLD(v4f_larger, top);
  // An infinite top would make the differences NaN where they are not.
  if (kind == LOG_SUM_EXP) top = v4f_select(v4f_abs(top) == INFINITE, sum, top);
  NO_UNROLL for (int32_t k = 0; k < whole; k += 4) {
    const v4f e = v4f_exp_normal((v4f_load(x + k) - top) * beta, c);
    sum += e;
    if (kind == SOFTMAX) v4f_store(y + k, e);
  }
  if (left) {
    const v4f e = v4f_exp_normal((v4f_load(x + whole) - top) * beta, c);
    sum += v4f_first_lanes(e, left, v4f_splat(0.0f));
    if (kind == SOFTMAX) v4f_store_first(y + whole, e, left);
  }
  sum = FOLD(plus, sum);
  const v4f log_sum = kind == SOFTMAX ? sum : v4f_log(sum), factor = 1.0f / sum;
  if (kind == LOG_SUM_EXP) {
    y[0] = (top + log_sum)[0];
    return;
  }
  NO_UNROLL for (int32_t k = 0; k < r; k += 4) {
    const v4f v = kind == SOFTMAX ? v4f_load(y + k) * factor : (v4f_load(x + k) - top) * beta - log_sum;
    v4f_store_lanes(y + k, v, r - k);
  }
}

// Up to four neighbouring lines whose elements are `inner` apart.
INLINE void four_lines(const float *x, float *y, int32_t r, int32_t inner, int32_t lines, float beta, int kind,
                       const Exponents *c) {
  const v4f none = v4f_splat(0.0f);
  v4f top = v4f_splat(-INFINITE), sum = none;
  NO_UNROLL for (int32_t k = 0; k < r; k++) top = v4f_max(v4f_load(x + k * inner), top);
  if (kind == LOG_SUM_EXP) top = v4f_select(v4f_abs(top) == INFINITE, none, top);
  NO_UNROLL for (int32_t k = 0; k < r; k++) {
    sum += v4f_exp_normal((v4f_load(x + k * inner) - top) * beta, c);
  }
  const v4f log_sum = kind == SOFTMAX ? sum : v4f_log(sum), factor = 1.0f / sum;
  if (kind == LOG_SUM_EXP) {
    v4f_store_lanes(y, top + log_sum, lines);
    return;
  }
  NO_UNROLL for (int32_t k = 0; k < r; k++) {
    const v4f shifted = (v4f_load(x + k * inner) - top) * beta;
    v4f_store_lanes(y + k * inner, kind == SOFTMAX ? v4f_exp_normal(shifted, c) * factor : shifted - log_sum, lines);
  }
}

enum { SHORT = 6 };  // elements of a row, up to which four rows are computed in the four lanes

// Up to four rows of r <= SHORT neighbouring elements.
INLINE void short_rows(const float *x, float *y, int32_t r, int32_t rows, float beta, int kind,
                       const Exponents *c) {
  const float *x1 = rows > 1 ? x + r : x, *x2 = rows > 2 ? x + 2 * r : x, *x3 = rows > 3 ? x + 3 * r : x;
  v4f v[SHORT], top = v4f_splat(-INFINITE), sum = v4f_splat(0.0f);
  NO_UNROLL for (int32_t k = 0; k < r; k++) {
    v[k] = (v4f){x[k], x1[k], x2[k], x3[k]};
    top = v4f_max(v[k], top);
  }
  if (kind == LOG_SUM_EXP) top = v4f_select(v4f_abs(top) == INFINITE, v4f_splat(0.0f), top);
  NO_UNROLL for (int32_t k = 0; k < r; k++) {
    const v4f shifted = (v[k] - top) * beta, e = v4f_exp_normal(shifted, c);
    sum += e;
    v[k] = kind == SOFTMAX ? e : shifted;
  }
  const v4f log_sum = kind == SOFTMAX ? sum : v4f_log(sum), factor = 1.0f / sum;
  if (kind == LOG_SUM_EXP) {
    v4f_store_lanes(y, top + log_sum, rows);
    return;
  }
  NO_UNROLL for (int32_t k = 0; k < r; k++) {
    const v4f result = kind == SOFTMAX ? v[k] * factor : v[k] - log_sum;
    y[k] = result[0];
    if (rows > 1) y[r + k] = result[1];
    if (rows > 2) y[2 * r + k] = result[2];
    if (rows > 3) y[3 * r + k] = result[3];
  }
}

// Four rows of two neighbouring elements, as short_rows computes them: the power of the larger one is 1.
INLINE void four_pairs(const float *x, float *y, float beta, const Exponents *c) {
  const v4f a = v4f_load(x), b = v4f_load(x + 4);
  const v4f first = __builtin_shufflevector(a, b, 0, 2, 4, 6), second = __builtin_shufflevector(a, b, 1, 3, 5, 7);
  const v4f top = v4f_max(second, first), p = first - top, q = second - top;
  const v4f e = v4f_exp_normal((p + q) * beta, c), factor = c->one / (c->one + e), small = e * factor;
  const v4f left = v4f_select(p == 0.0f, factor, small), right = v4f_select(q == 0.0f, factor, small);
  v4f_store(y, __builtin_shufflevector(left, right, 0, 4, 1, 5));
  v4f_store(y + 4, __builtin_shufflevector(left, right, 2, 6, 3, 7));
}

// Lines [begin, end); one function for all kinds, which would be three times its code.
static __attribute__((noinline)) void lines(const float *x, float *y, int32_t r, int32_t inner, float beta,
                                            int32_t begin, int32_t end, int kind) {
  PIN(kind);  // unknown to clang, which would make one for each kind
  const int32_t results = kind == LOG_SUM_EXP ? 1 : r;
  const Exponents c = find_exponents();
  for (int32_t i = begin, n; i < end; i += n) {
    const int32_t outer = inner == 1 ? i : i / inner, column = i - outer * inner, rest = inner - column;
    n = inner == 1 && r <= SHORT ? 4 : rest < 4 ? rest : 4;
    n = n < end - i ? n : end - i;
    const float *from = x + outer * r * inner + column;
    float *to = y + outer * results * inner + column;
    if (inner > 1) {
      four_lines(from, to, r, inner, n, beta, kind, &c);
    } else if (kind == SOFTMAX && r == 2 && n == 4) {
      NO_UNROLL for (n = 0; n + 4 <= end - i; n += 4) four_pairs(from + 2 * n, to + 2 * n, beta, &c);
    } else if (r <= SHORT) {
      short_rows(from, to, r, n, beta, kind, &c);
    } else {
      one_row(from, to, r, beta, kind, &c);
    }
  }
}

#define LINES(NAME, KIND)                                                                                    \
  void NAME(const float *restrict x, float *restrict y, int32_t r, int32_t inner, float beta, int32_t begin, \
            int32_t end) {                                                                                   \
    lines(x, y, r, inner, beta, begin, end, KIND);                                                           \
  }

LINES(f32_log_softmax, LOG_SOFTMAX)
LINES(f32_reduce_log_sum_exp, LOG_SUM_EXP)
LINES(f32_softmax, SOFTMAX)
