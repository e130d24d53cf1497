// Elementwise functions of two float32 tensors that broadcast together, with a fused clamp:
// y = clamp(f(a, b), lo, hi).
//
//   a, b  float32  read, up to 12 bytes past an end       y  float32, dense  written; may be an operand of its shape
//   nest  int32    the loop nest of include/walk.h over a and b; inner strides are 0 or 1
//   Needs: y overlaps an operand only where it is that operand.
//
// Units: elements of y.
#include "formulas.h"
#include "lanes.h"
#include "math.h"
#include "pow.h"
#include "walk.h"

// A row's operand: itself, or for stride 0 four copies of its one element.
INLINE const float *row_operand(const float *p, int32_t step, float *copies) {
  if (step) return p;
  v4f_store(copies, v4f_load_splat(p));
  return copies;
}

enum { LONG_ROW = 256 };
typedef struct {
  int32_t nest[7];
  float row[LONG_ROW + 4];
} LongRows;

// A nest of short rows of which one operand has the same in every row (a channel's factor or summand): as a nest of rows
// that are a multiple as long, with as many copies of that operand's row. Any other nest is left as it is.
static __attribute__((noinline)) const int32_t *long_rows(LongRows *l, const int32_t *nest, const float **a,
                                                          const float **b) {
  const int32_t rows = nest[1], inner = nest[2];
  if (nest[0] != 2 || inner < 1 || inner > LONG_ROW / 2 || rows < 8) return nest;
  const int32_t *a_steps = nest + 3, *b_steps = nest + 5;
  if (a_steps[1] != 1 || b_steps[1] != 1) return nest;
  const int32_t is_b = a_steps[0] == inner && b_steps[0] == 0, is_a = b_steps[0] == inner && a_steps[0] == 0;
  if (!is_a && !is_b) return nest;
  const int32_t most = LONG_ROW / inner, times = most < rows ? most : rows, length = times * inner;
  const float **repeated = is_b ? b : a;
  for (int32_t i = 0; i < length; i++) l->row[i] = i < inner ? (*repeated)[i] : l->row[i - inner];
  *repeated = l->row;
  const int32_t words[7] = {2, (rows + times - 1) / times, length, is_a ? 0 : length, 1, is_b ? 0 : length, 1};
  for (int32_t i = 0; i < 7; i++) l->nest[i] = words[i];
  return l->nest;
}

#define BINARY(NAME, FORMULA)                                                                            \
  void f32_##NAME(const float *a_from, const float *b_from, float *to, const int32_t *nest, float lo_value, \
                  float hi_value, int32_t begin, int32_t end) {                                          \
    const v4f lo = v4f_splat(lo_value), hi = v4f_splat(hi_value);                                        \
    float copies[8];                                                                                     \
    LongRows long_ones;                                                                                  \
    Walk w;                                                                                              \
    walk_start(&w, long_rows(&long_ones, nest, &a_from, &b_from), 2, begin);                             \
    const int32_t a_step = 4 * walk_step(&w, 0), b_step = 4 * walk_step(&w, 1);                          \
    for (int32_t i = begin, n; i < end; i += n, walk_next_row(&w)) {                                     \
      n = walk_count(&w, i, end);                                                                        \
      const float *ap = row_operand(a_from + w.offset[0], a_step, copies);                               \
      const float *bp = row_operand(b_from + w.offset[1], b_step, copies + 4);                           \
      float *yp = to + i;                                                                                \
      NO_UNROLL for (int32_t rest = n; rest > 0; rest -= 4, ap += a_step, bp += b_step, yp += 4) {       \
        const v4f a = v4f_load(ap), b = v4f_load(bp);                                                    \
        const v4f y = v4f_clamp(FORMULA, lo, hi);                                                        \
        v4f_store_lanes(yp, y, rest);                                                                    \
      }                                                                                                  \
    }                                                                                                    \
  }

// a modulo b with the sign of b. The quotient of two float32 in float64 is never rounded across an integer below 2^28;
// larger ones are taken off in pieces.
static __attribute__((noinline)) float modulo(float a, float b) {
  const double wide_b = b;
  double r = a;
  if (a - a != 0 || b == 0 || b != b) return __builtin_nanf("");
  if (b - b != 0) return (r < 0) != (b < 0) && r != 0 ? b : a;
  for (int32_t pieces = 0; pieces < 16; pieces++) {
    const double q = __builtin_trunc(r / wide_b), size = __builtin_fabs(q);
    if (size == 0) break;
    // Only the first 28 bits of a quotient are exact enough to multiply back.
    const uint64_t kept = __builtin_bit_cast(uint64_t, q) & ~((1ull << 25) - 1);
    r -= (size < 0x1p28 ? q : __builtin_bit_cast(double, kept)) * wide_b;
  }
  if (r != 0 && (r < 0) != (b < 0)) r += wide_b;
  return (float)r;
}
static __attribute__((noinline)) float floor_quotient(float a, float b) { return (float)__builtin_floor((double)a / b); }
INLINE v4f each_lane(float (*f)(float, float), v4f a, v4f b) {
  return (v4f){f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])};
}

FLOAT_BINARY_ROWS(BINARY)
