// A float product whose weights stay packed in 4 or 8 bits: each panel becomes floats once for all rows. Of one row and 4
// bits nothing is stored: a weight becomes a float by its bits.
//
//   x      [rows, k]  read
//   w      panels of pack_matmul_weights, as many bits a weight and steps of k a group as they were packed with
//   bias   [n] or 0   read, up to 12 bytes past its end
//   y      [rows, n]  written; sums of more than DEPTH steps of k wait there
//   act, lo, hi       as in epilogue.h
//
// Needs: x and y do not overlap. Units: panels of 8 outputs.
#include "lanes.h"

#if defined(__wasm_relaxed_simd__)
#define MR 6
#elif SIMD
#define MR 5
#else
#define MR 4
#endif
#define NR 8
#include "product_tile.h"

enum {
  HEAD = 8 * NR,
  DEPTH = 1024,        // steps of k that are floats at a time, half of the stack
  MOST_GROUPS = 1024,  // of a single row, whose sums lie on the stack
};

typedef struct {
  v4f scale[NV], zero[NV];
} Group;

INLINE void widen_row(float *to, v8ub bytes, const Group *g) {
  const v8s wide = v8s_widen_u(bytes);
  v4f_store(to, (v4f_from_i32(v4i_widen_low(wide)) - g->zero[0]) * g->scale[0]);
  v4f_store(to + 4, (v4f_from_i32(v4i_widen_high(wide)) - g->zero[1]) * g->scale[1]);
}

// The `length` steps of a panel from step k on as floats; k is even.
static __attribute__((noinline)) void unpack(const uint8_t *panel, float *to, int32_t k, int32_t length, int32_t bits,
                                             int32_t group) {
  for (const int32_t end = k + length; k < end;) {
    const int32_t index = k / group, first = k - index * group;
    const int32_t left = group - first < end - k ? group - first : end - k;
    const uint8_t *head = panel + index * (HEAD + group * bits), *from = head + HEAD + first * bits;
    const Group g = {{v4f_load(head), v4f_load(head + 16)}, {v4f_load(head + 32), v4f_load(head + 48)}};
    if (bits == 8) {
      NO_UNROLL for (int32_t i = 0; i < left; i++, from += NR, to += NR) widen_row(to, v8ub_load(from), &g);
    } else {
      NO_UNROLL for (int32_t i = 0; i < left; i += 2, from += NR, to += 2 * NR) {
        const v8ub pair = v8ub_load(from);
        widen_row(to, pair & 15, &g);
        if (i + 1 < left) widen_row(to + NR, pair >> 4, &g);
      }
    }
    k += left;
  }
}

// One row's sums; four of them run side by side.
INLINE void multiply_row(v4f acc[NV], const float *a, const float *w, int32_t length) {
  v4f odd[NV] = {v4f_splat(0.0f), v4f_splat(0.0f)};
  int32_t k = length;
  NO_UNROLL for (; k >= 2; k -= 2, a += 2, w += 2 * NR) {
    const v4f s = v4f_load_splat(a), t = v4f_load_splat(a + 1);
    UNROLL for (int j = 0; j < NV; j++) {
      acc[j] = v4f_madd(s, v4f_load(w + 4 * j), acc[j]);
      odd[j] = v4f_madd(t, v4f_load(w + NR + 4 * j), odd[j]);
    }
  }
  UNROLL for (int j = 0; j < NV; j++) {
    if (k) acc[j] = v4f_madd(v4f_load_splat(a), v4f_load(w + 4 * j), acc[j]);
    acc[j] += odd[j];
  }
}

#if SIMD
// sums += s * one step of k, of eight outputs whose weights are bytes q << 3: upper halves of floats 2 + q / 8 have them.
INLINE void add_step(v4f sums[NV], v4f s, v8u halves) {
  const v8u none = {0};
  const v4f left = (v4f)__builtin_shufflevector(none, halves, 0, 8, 1, 9, 2, 10, 3, 11);
  const v4f right = (v4f)__builtin_shufflevector(none, halves, 4, 12, 5, 13, 6, 14, 7, 15);
  sums[0] = v4f_madd(s, left, sums[0]);
  sums[1] = v4f_madd(s, right, sums[1]);
}

#define FIRST_HALVES(a, b) (v8u)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LAST_HALVES(a, b) \
  (v8u)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

// acc += a panel of 4 bits times one row, four steps of k at a time; `totals` are the row's sums by groups. What makes a
// weight a float f, 2 + q / 8, and its zero are taken from the sum of a group: sum a (q - z) s is
// 8 s (sum a f - (2 + z / 8) sum a).
static __attribute__((noinline)) void multiply_packed(v4f acc[NV], const uint8_t *panel, const float *a,
                                                      const float *totals, int32_t k, int32_t group) {
  const v16u two = (v16u){0} + 0x40, mask = (v16u){0} + 0x78;
  for (; k > 0; k -= group, totals++) {
    const v4f total = v4f_load_splat(totals);
    v4f even[NV] = {v4f_splat(0.0f), v4f_splat(0.0f)}, odd[NV] = {v4f_splat(0.0f), v4f_splat(0.0f)};
    const uint8_t *from = panel + HEAD;
    NO_UNROLL for (int32_t i = group < k ? group : k; i > 0; i -= 4, a += 4, from += 2 * NR) {
      const v16u q = v16u_load(from);
      const v16u low = (v16u)((v8u)q << 3) & mask, high = (v16u)((v8u)q >> 1) & mask;
      add_step(even, v4f_load_splat(a), FIRST_HALVES(low, two));
      add_step(odd, v4f_load_splat(a + 1), FIRST_HALVES(high, two));
      add_step(even, v4f_load_splat(a + 2), LAST_HALVES(low, two));
      add_step(odd, v4f_load_splat(a + 3), LAST_HALVES(high, two));
    }
    UNROLL for (int j = 0; j < NV; j++) {
      const v4f scale = v4f_load(panel + 16 * j) * 8.0f, zero = v4f_load(panel + HEAD / 2 + 16 * j) * 0.125f + 2.0f;
      acc[j] = v4f_madd(scale, even[j] + odd[j] - zero * total, acc[j]);
    }
    panel += HEAD + group * 4;
  }
}

// The product of one row, whose weights have 4 bits; 0, and nothing is done, if numbers of the row are not finite: of
// what is taken from their sums a NaN would be left.
INLINE int32_t product_of_one(const float *x, const uint8_t *w, const float *bias, float *y, int32_t k, int32_t n,
                           int32_t group, const Epilogue *e, int32_t begin, int32_t end) {
  const int32_t groups = (k + group - 1) / group;
  float totals[MOST_GROUPS], none = 0.0f;
  for (int32_t g = 0; g < groups; g++) {
    const int32_t last = g + 1 < groups ? (g + 1) * group : k;
    float total = 0.0f;
    for (int32_t i = g * group; i < last; i++) total += x[i];
    totals[g] = total;
    none += total * 0.0f;
  }
  if (none != 0.0f) return 0;
  for (int32_t panel = begin; panel < end; panel++) {
    const int32_t column = panel * NR, left = n - column;
    const Target to = {y + column, n, 0, 1};
    v4f acc[MR][NV];
    for (int r = 0; r < MR; r++) {
      for (int j = 0; j < NV; j++) {
        acc[r][j] = bias ? v4f_load_lanes(bias + column + 4 * j, left - 4 * j) : v4f_splat(0.0f);
      }
    }
    multiply_packed(acc[0], w + panel * groups * (HEAD + group * 4), x, totals, k, group);
    store_tile(acc, e, &to, 1, column, left);
  }
  return 1;
}

#endif

void f32_matmul_packed(const float *x, const uint8_t *w, const float *bias, float *y, int32_t rows, int32_t k,
                       int32_t n, int32_t bits, int32_t group, int32_t act, float lo, float hi, int32_t begin,
                       int32_t end) {
  const Epilogue ends = {0, 0, 0, act, lo, hi};
  const Epilogue waits = {0, 0, 0, ACTIVATION_CLAMP, -__builtin_inff(), __builtin_inff()};
#if SIMD
  if (rows == 1 && bits == 4 && k % 4 == 0 && group % 4 == 0 && (k + group - 1) / group <= MOST_GROUPS &&
      product_of_one(x, w, bias, y, k, n, group, &ends, begin, end)) {
    return;
  }
#endif
  const int32_t panel_bytes = (k + group - 1) / group * (HEAD + group * bits);
  float block[DEPTH * NR];
  for (int32_t panel = begin; panel < end; panel++) {
    const int32_t column = panel * NR, left = n - column;
    for (int32_t at = 0; at < k; at += DEPTH) {
      const int32_t length = k - at < DEPTH ? k - at : DEPTH;
      const Epilogue *e = at + length == k ? &ends : &waits;
      unpack(w + panel * panel_bytes, block, at, length, bits, group);
      for (int32_t row = 0; row < rows; row += MR) {
        const int32_t count = rows - row < MR ? rows - row : MR;
        const Target to = {y + row * n + column, n, row, 1};
        const float *a[MR];
        v4f acc[MR][NV];
        for (int r = 0; r < MR; r++) {
          const int32_t own = r < count ? r : count - 1;
          a[r] = x + (row + own) * k + at;
          const float *start = at ? to.y + own * n : bias ? bias + column : 0;
          for (int j = 0; j < NV; j++) acc[r][j] = start ? v4f_load_lanes(start + 4 * j, left - 4 * j) : v4f_splat(0.0f);
        }
        if (count == 1) {
          multiply_row(acc[0], a[0], block, length);
        } else {
          multiply(acc, a, block, length);
        }
        store_tile(acc, e, &to, count, column, left);
      }
    }
  }
}
