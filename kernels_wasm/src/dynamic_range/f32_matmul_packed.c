// A float product whose weights stay packed in 4 or 8 bits: each panel becomes floats once for all rows.
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

enum { DEPTH = 1024, HEAD = 8 * NR };  // DEPTH: steps of k that are floats at a time, half of the stack

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

void f32_matmul_packed(const float *x, const uint8_t *w, const float *bias, float *y, int32_t rows, int32_t k,
                       int32_t n, int32_t bits, int32_t group, int32_t act, float lo, float hi, int32_t begin,
                       int32_t end) {
  const Epilogue ends = {0, 0, 0, act, lo, hi};
  const Epilogue waits = {0, 0, 0, ACTIVATION_CLAMP, -__builtin_inff(), __builtin_inff()};
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
