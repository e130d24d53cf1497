// Products of bytes in pairs, for engines whose dot product of four bytes saturates: sums of four products stay in 16
// bits while the positive weights, and the negative ones, of a lane add up to at most PAIRS_MOST.
//
// Weights come in chunks of two groups, whose pairs are added lane by lane: neighbours, or what the panel's order says.
// Where a lane's weights are too large, the chunk holds smaller ones, and corrections hold the rest as int16: for each
// of four columns, two steps of a window of sixteen. Behind its weights a panel has the corrections of its lower columns,
// the order of its groups if it has one, and at its end the corrections of its upper columns. Two chunks whose sums 16
// bits hold together are a quad; quads come first.
#pragma once

#include "q8_tile.h"

enum {
  CHUNK = 2 * GROUP,   // steps of a sum
  WINDOW = 16,         // steps that a correction chooses from
  CHUNK_BYTES = CHUNK * COLUMNS,
  PAIRS_MOST = 127,    // 255 times this fits 16 bits and a sign, and so does a weight of this size in a byte
  PAIRS_DEPTH = 4096,  // of a sum, at most: what a block of pixels holds (q8_product.h)
  PANELS_TRIED = 4,    // before too many corrections end the weighing
};

typedef struct {
  int32_t at;  // the first step of the window
  uint8_t steps[WINDOW];
  int16_t weights[COLUMNS];
} Correction;

// What a panel says where others say what their weights lack.
typedef struct {
  int32_t low, bytes, high;  // low, high: corrections; bytes: of the panel
  int32_t order, quads;      // order: where it is, or 0
} Paired;

INLINE int32_t bytes_of_paired(const uint8_t *panel) { return ((const Paired *)(panel + LACKING))->bytes; }

// The pixels of tiles that lie behind each other: their groups side by side; as they are stored, `stride` bytes apart;
// and their sums, if what was taken off the weights is to be added.
typedef struct {
  const uint8_t *groups, *lines;
  int32_t groups_step, stride, flip;  // groups_step: from one tile to the next
  const v4i *x_sums;
} Pixels;

INLINE int32_t chunks_of(int32_t depth) { return (depth + CHUNK - 1) / CHUNK; }

#if defined(__wasm_relaxed_simd__)
// sums += what so many corrections from `c` on hold for four columns.
INLINE void correct(v4i *sums, const Pixels *pixels, const Correction *c, int32_t count, const int rows) {
  NO_UNROLL for (; count > 0; count--, c++) {
    PIN(c);
    const uint8_t *line = pixels->lines + c->at;
    const v16u steps = v16u_load(c->steps);
    const v8s weights = v8s_load(c->weights);
    UNROLL for (int r = 0; r < rows; r++, line += pixels->stride) {
      const v16u x = v16u_load(line) ^ (uint8_t)pixels->flip;
      sums[r] += v4i_dot_i16((v8s)v16u_choose(x, steps), weights);
    }
  }
}

// t += a chunk's two groups of pixels times its weights.
INLINE void add_chunk(Tile *t, const uint8_t *a, const uint8_t *a_next, const uint8_t *b, const int rows) {
  const v16s low = v16s_load(b), high = v16s_load(b + 16), next_low = v16s_load(b + 32), next_high = v16s_load(b + 48);
  v4i whole[ROWS], next_whole[ROWS];
  if (GATHERS && rows == ROWS) splat_groups(whole, a), splat_groups(next_whole, a_next);
  UNROLL for (int r = 0; r < rows; r++) {
    const v16u x = (v16u)(GATHERS && rows == ROWS ? whole[r] : group_splat(a + GROUP * r));
    const v16u next = (v16u)(GATHERS && rows == ROWS ? next_whole[r] : group_splat(a_next + GROUP * r));
    t->low[r] += v4i_pair_sums(v8s_dot2_i8(low, x) + v8s_dot2_i8(next_low, next));
    t->high[r] += v4i_pair_sums(v8s_dot2_i8(high, x) + v8s_dot2_i8(next_high, next));
  }
}

// t += a quad's four groups of pixels times its weights, two pixels at a time: the sums of four fill the registers.
INLINE void add_quad(Tile *t, const uint8_t *const *a, const uint8_t *b, const v8s *one) {
  UNROLL for (int half = 0; half < ROWS; half += 2) {
    v8s low[2] = {}, high[2] = {};
    UNROLL for (int g = 0; g < 4; g++) {
      v16s b_low = v16s_load(b + 32 * g), b_high = v16s_load(b + 32 * g + 16);
      PIN(b_low);
      PIN(b_high);
      UNROLL for (int r = 0; r < 2; r++) {
        v16u x = (v16u)group_splat(a[g] + GROUP * (half + r));
        PIN(x);
        low[r] = g ? low[r] + v8s_dot2_i8(b_low, x) : v8s_dot2_i8(b_low, x);
        high[r] = g ? high[r] + v8s_dot2_i8(b_high, x) : v8s_dot2_i8(b_high, x);
        PIN(low[r]);
        PIN(high[r]);
      }
    }
    v8s ones = v8s_load(one);
    PIN(ones);
    UNROLL for (int r = 0; r < 2; r++) {
      t->low[half + r] += v4i_dot_i16(low[r], ones);
      t->high[half + r] += v4i_dot_i16(high[r], ones);
      PIN(t->low[half + r]);
      PIN(t->high[half + r]);
    }
  }
}

// t += the panel's corrections, which lie behind its weights and at its end.
INLINE void add_corrections(Tile *t, const Pixels *pixels, const uint8_t *panel, const uint8_t *weights_end,
                            const int rows) {
  const Paired paired = *(const Paired *)(panel + LACKING);
  if (LIKELY(!(paired.low | paired.high))) return;
  correct(t->low, pixels, (const Correction *)weights_end, paired.low, rows);
  correct(t->high, pixels, (const Correction *)(panel + paired.bytes) - paired.high, paired.high, rows);
}

// t += a[groups][rows][4] * the panel's weights; reads the group behind an odd last one, times zero.
INLINE void multiply_pairs(Tile *t, const Pixels *pixels, const uint8_t *panel, int32_t groups, const int rows) {
  const int32_t to_order = ((const Paired *)(panel + LACKING))->order;
  const uint8_t *b = panel + HEAD, *a = pixels->groups, *end = b + (groups + 1) / 2 * CHUNK_BYTES;
  add_corrections(t, pixels, panel, end, rows);
  if (LIKELY(!to_order)) {
    NO_UNROLL for (; b != end; a += 2 * GROUP * rows, b += CHUNK_BYTES) {
      PIN(a);
      PIN(b);
      add_chunk(t, a, a + GROUP * rows, b, rows);
    }
    return;
  }
  const uint16_t *order = (const uint16_t *)(panel + to_order);
  NO_UNROLL for (; b != end; order += 2, b += CHUNK_BYTES) {
    PIN(order);
    PIN(b);
    const uint8_t *first = a + order[0] * rows, *second = a + order[1] * rows;
    PIN(first);
    PIN(second);
    add_chunk(t, first, second, b, rows);
  }
}

// Whether most of a panel's chunks are in quads.
INLINE int32_t has_quads(const uint8_t *panel, int32_t groups) {
  return ((const Paired *)(panel + LACKING))->quads * 6 > groups;
}

// The same as multiply_pairs with quads, for whole tiles.
INLINE void multiply_quads(Tile *t, const Pixels *pixels, const uint8_t *panel, int32_t groups) {
  const Paired paired = *(const Paired *)(panel + LACKING);
  const uint8_t *b = panel + HEAD, *a = pixels->groups, *end = b + (groups + 1) / 2 * CHUNK_BYTES;
  const uint8_t *quads_end = b + paired.quads * 2 * CHUNK_BYTES;
  add_corrections(t, pixels, panel, end, ROWS);
  const v8s ones = v8s_splat(1), *one = &ones;
  PIN(one);
  if (LIKELY(!paired.order)) {
    NO_UNROLL for (; b != quads_end; a += 4 * GROUP * ROWS, b += 2 * CHUNK_BYTES) {
      PIN(a);
      PIN(b);
      add_quad(t, (const uint8_t *const[]){a, a + GROUP * ROWS, a + 2 * GROUP * ROWS, a + 3 * GROUP * ROWS}, b, one);
    }
    NO_UNROLL for (; b != end; a += 2 * GROUP * ROWS, b += CHUNK_BYTES) {
      PIN(a);
      PIN(b);
      add_chunk(t, a, a + GROUP * ROWS, b, ROWS);
    }
    return;
  }
  const uint16_t *order = (const uint16_t *)(panel + paired.order);
  NO_UNROLL for (; b != quads_end; order += 4, b += 2 * CHUNK_BYTES) {
    PIN(order);
    PIN(b);
    const uint8_t *at[4];
    UNROLL for (int g = 0; g < 4; g++) {
      at[g] = a + order[g] * ROWS;
      PIN(at[g]);
    }
    add_quad(t, at, b, one);
  }
  NO_UNROLL for (; b != end; order += 2, b += CHUNK_BYTES) {
    PIN(order);
    PIN(b);
    add_chunk(t, a + order[0] * ROWS, a + order[1] * ROWS, b, ROWS);
  }
}
#else
INLINE void multiply_pairs(Tile *t, const Pixels *pixels, const uint8_t *panel, int32_t groups, const int rows) {
  (void)t, (void)pixels, (void)panel, (void)groups, (void)rows;  // nobody calls it
}
INLINE void multiply_quads(Tile *t, const Pixels *pixels, const uint8_t *panel, int32_t groups) {
  (void)t, (void)pixels, (void)panel, (void)groups;
}
INLINE int32_t has_quads(const uint8_t *panel, int32_t groups) { return (void)panel, (void)groups, 0; }
#endif
