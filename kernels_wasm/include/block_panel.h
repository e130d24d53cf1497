// Dot products of rounded activations with blocks of weights, in 16 bits: four rows by eight rows of weights that were
// opened and laid side by side. Sums are pinned where they are added: else clang adds them up in the end, the operands lie
// on the stack until then, and the product takes 2.5 times as long.
#pragma once

#include "block_dots.h"

enum { OPENED = 24 };  // blocks of 32 that are open at a time: 15 kB of the stack

#if SIMD
// 32 weights of eight rows, in 16 bits: q[2j] has the weights 2j and 2j + 1 of rows 0 to 3, q[2j + 1] of rows 4 to 7.
// d and m: first of 16 weights, then of the others, each of rows 0 to 3 and 4 to 7.
typedef struct {
  v8s q[32];
  v4f d[4], m[4];
} Opened;

// 16 bytes of each of four rows, pair beside pair, into every second of 16 vectors.
INLINE void open_pairs(v16u a, v16u b, v16u c, v16u d, v8s *to) {
#define BESIDE(A, B, HALF) \
  __builtin_shufflevector((v8u)A, (v8u)B, HALF, HALF + 8, HALF + 1, HALF + 9, HALF + 2, HALF + 10, HALF + 3, HALF + 11)
  const v4u ab[2] = {(v4u)BESIDE(a, b, 0), (v4u)BESIDE(a, b, 4)}, cd[2] = {(v4u)BESIDE(c, d, 0), (v4u)BESIDE(c, d, 4)};
#undef BESIDE
  UNROLL for (int32_t i = 0; i < 2; i++) {
    const v4u first = __builtin_shufflevector(ab[i], cd[i], 0, 4, 1, 5);
    const v4u second = __builtin_shufflevector(ab[i], cd[i], 2, 6, 3, 7);
    to[8 * i] = (v8s)wasm_u16x8_extend_low_u8x16((v128_t)first);
    to[8 * i + 2] = (v8s)wasm_u16x8_extend_high_u8x16((v128_t)first);
    to[8 * i + 4] = (v8s)wasm_u16x8_extend_low_u8x16((v128_t)second);
    to[8 * i + 6] = (v8s)wasm_u16x8_extend_high_u8x16((v128_t)second);
  }
}

// A block of four rows, into every second vector of `to`. The types that most files have are opened without a detour.
INLINE void open_four(int32_t type, const uint8_t *const *rows, int32_t at, v8s *q, v4f *d, v4f *m) {
  v16u low[4], high[4];
  if (type == BLOCKS_Q4_0 || type == BLOCKS_Q4_1 || type == BLOCKS_Q8_0) {
    const int32_t bytes = blocks_bytes(type), head = type == BLOCKS_Q4_1 ? 4 : 2;
    const uint8_t *p[4];
    UNROLL for (int32_t i = 0; i < 4; i++) {
      p[i] = rows[i] + at * bytes;
      const v16u some = v16u_load(p[i] + head);
      low[i] = type == BLOCKS_Q8_0 ? some ^ 128 : some & 15;
      high[i] = type == BLOCKS_Q8_0 ? v16u_load(p[i] + head + 16) ^ 128 : (v16u)((v8u)some >> 4) & 15;
    }
    const v4u heads = {word_at(p[0]), word_at(p[1]), word_at(p[2]), word_at(p[3])};
    d[0] = d[2] = floats_of_halves(heads & 0xffff);
    m[0] = m[2] = type == BLOCKS_Q4_1 ? floats_of_halves(heads >> 16) : d[0] * (type == BLOCKS_Q8_0 ? -128.0f : -8.0f);
  } else {
    Block b[4];
    UNROLL for (int32_t i = 0; i < 4; i++) {
      blocks_open(type, rows[i], at, &b[i]);
      low[i] = v16u_load(b[i].q);
      high[i] = v16u_load(b[i].q + 16);
    }
    UNROLL for (int32_t half = 0; half < 2; half++) {
      d[2 * half] = (v4f){b[0].d[half], b[1].d[half], b[2].d[half], b[3].d[half]};
      m[2 * half] = (v4f){b[0].m[half], b[1].m[half], b[2].m[half], b[3].m[half]};
    }
  }
  open_pairs(low[0], low[1], low[2], low[3], q);
  open_pairs(high[0], high[1], high[2], high[3], q + 16);
}

INLINE void open_panel(int32_t type, const uint8_t *const *rows, int32_t from, int32_t count, Opened *to) {
  NO_UNROLL for (int32_t at = 0; at < count; at++, to++) {
    NO_UNROLL for (int32_t i = 0; i < 2; i++) open_four(type, rows + 4 * i, from + at, to->q + i, to->d + i, to->m + i);
  }
}

// Four rows times a panel, added to y [4][8]. With `halves` each 16 weights have a scale of their own.
INLINE void dots_of_four(int halves, const Opened *w, const int16_t *const *x, const float *const *scales,
                         const float *const *sums, int32_t blocks, float *y) {
  const int16_t *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
  NO_UNROLL for (int32_t at = 0; at < blocks; at++, w++) {
    UNROLL for (int32_t part = 0; part < (halves ? 2 : 1); part++) {
      v4i s0 = v4i_splat(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
      const v8s *q = w->q + 16 * part;
      UNROLL for (int32_t j = 0; j < (halves ? 8 : 16); j++) {
        PIN(q);
        const v8s left = q[2 * j], right = q[2 * j + 1];
#define ROW(I)                                                                        \
  {                                                                                   \
    PIN(x##I);                                                                        \
    const v8s pair = (v8s)wasm_v128_load32_splat(x##I + 16 * part + 2 * j);           \
    s##I += v4i_dot_i16(pair, left);                                                  \
    t##I += v4i_dot_i16(pair, right);                                                 \
    PIN(s##I);                                                                        \
    PIN(t##I);                                                                        \
  }
        ROW(0)
        ROW(1)
        ROW(2)
        ROW(3)
#undef ROW
      }
#define END(I)                                                                                                   \
  {                                                                                                              \
    const v4f scale = v4f_load_splat(scales[I] + at);                                                            \
    const v4f sum = v4f_splat(halves ? sums[I][2 * at + part] : sums[I][2 * at] + sums[I][2 * at + 1]);          \
    const v4f with_left = v4f_madd(w->m[2 * part], sum, v4f_load(y + 8 * I));                                    \
    v4f_store(y + 8 * I, v4f_madd(v4f_from_i32(s##I) * w->d[2 * part], scale, with_left));                       \
    const v4f with_right = v4f_madd(w->m[2 * part + 1], sum, v4f_load(y + 8 * I + 4));                           \
    v4f_store(y + 8 * I + 4, v4f_madd(v4f_from_i32(t##I) * w->d[2 * part + 1], scale, with_right));              \
  }
      END(0)
      END(1)
      END(2)
      END(3)
#undef END
    }
    x0 += 32, x1 += 32, x2 += 32, x3 += 32;
  }
}
#endif
