// Products of bytes in pairs, for engines whose dot product of four bytes saturates: sums of four products stay in 16
// bits while the positive weights, and the negative ones, of a lane add up to at most PAIRS_MOST.
//
// Weights come in chunks of two groups, whose pairs are added lane by lane. Where a chunk's weights are too large, it
// holds smaller ones, and corrections hold the rest: each a group's number and the rest of its weights, whose own
// pairs fit. A panel says how many corrections it has where others say what its weights lack.
#pragma once

#include "q8_tile.h"

enum {
  CHUNK = 2 * GROUP,         // steps of a sum
  PAIRS_MOST = 127,          // 255 times this fits 16 bits and a sign, and so does a weight of this size in a byte
  CORRECTION = 4 + GROUP * COLUMNS,  // bytes
  PAIRS_DEPTH = 4096,        // of a sum, at most: what a block of pixels holds (q8_product.h)
  PANELS_TRIED = 4,          // before too many corrections end the weighing
};

INLINE int32_t chunks_of(int32_t depth) { return (depth + CHUNK - 1) / CHUNK; }

#if defined(__wasm_relaxed_simd__)
// t += a[groups][rows][4] * the panel's weights; reads the group behind an odd last one, times zero.
INLINE void multiply_pairs(Tile *t, const uint8_t *a, const uint8_t *panel, int32_t groups, const int rows) {
  const uint8_t *b = panel + HEAD, *from = a;
  NO_UNROLL for (int32_t left = groups; left > 0; left -= 2, from += 2 * GROUP * rows, b += 2 * GROUP * COLUMNS) {
    PIN(from);
    PIN(b);
    const v16s low = v16s_load(b), high = v16s_load(b + 16), next_low = v16s_load(b + 32), next_high = v16s_load(b + 48);
    UNROLL for (int r = 0; r < rows; r++) {
      const v16u x = (v16u)group_splat(from + GROUP * r), next = (v16u)group_splat(from + GROUP * (rows + r));
      t->low[r] += v4i_pair_sums(v8s_dot2_i8(low, x) + v8s_dot2_i8(next_low, next));
      t->high[r] += v4i_pair_sums(v8s_dot2_i8(high, x) + v8s_dot2_i8(next_high, next));
    }
  }
  int32_t corrections = *(const int32_t *)(panel + LACKING);
  NO_UNROLL for (; corrections > 0; corrections--, b += CORRECTION) {
    from = a + *(const int32_t *)b * (GROUP * rows);
    PIN(from);
    const v16s low = v16s_load(b + 4), high = v16s_load(b + 20);
    UNROLL for (int r = 0; r < rows; r++) {
      const v16u x = (v16u)group_splat(from + GROUP * r);
      t->low[r] += v4i_pair_sums(v8s_dot2_i8(low, x));
      t->high[r] += v4i_pair_sums(v8s_dot2_i8(high, x));
    }
  }
}
#else
INLINE void multiply_pairs(Tile *t, const uint8_t *a, const uint8_t *panel, int32_t groups, const int rows) {
  (void)t, (void)a, (void)panel, (void)groups, (void)rows;  // nobody calls it
}
#endif
