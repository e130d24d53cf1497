// Which groups of weights share a chunk, and which chunks a quad (q8_pairs.h). Weights lie by steps of the sum: a vector
// is one step of all columns.
#pragma once

#include "q8_pairs.h"

#if defined(__wasm_relaxed_simd__)
enum {
  SEGMENT = 512,  // steps whose groups may be joined to chunks
  CELLS = SEGMENT / GROUP,
};

INLINE v8s v8s_select(v8s mask, v8s yes, v8s no) { return (yes & mask) | (no & ~mask); }
INLINE v8s above_zero(v8s a) { return v8s_select(a > (v8s){}, a, (v8s){}); }

// In how many lanes two groups exceed what a chunk holds. Of each group four sums: of positive and of negative weights.
INLINE int32_t excesses(const v8s *a, const v8s *b) {
  v8s count = {};
  for (int32_t i = 0; i < 4; i++) count -= a[i] + b[i] > v8s_splat(PAIRS_MOST);
  int32_t total = 0;
  for (int32_t column = 0; column < COLUMNS; column++) total += count[column];
  return total;
}

// Of a group's weights four sums for each column.
INLINE void sum_group(const v8s *w, v8s *sums) {
  for (int32_t i = 0; i < 4; i++) {
    const v8s a = w[i / 2 * 2], b = w[i / 2 * 2 + 1];
    sums[i] = i % 2 ? above_zero(-a) + above_zero(-b) : above_zero(a) + above_zero(b);
  }
}

// Joins the groups of a segment, pair by pair, to partners that need few corrections: `order` is that of their first
// steps. Says whether neighbours are joined.
static int32_t join_groups(const v8s *w, int32_t groups, uint16_t *order) {
  v8s sums[CELLS][4];
  uint8_t used[CELLS] = {};
  // Those that have the largest sums choose first, or all in turn where neighbours exceed nothing.
  int32_t sizes[CELLS], total = 0;
  for (int32_t g = 0; g < groups; g++) {
    sum_group(w + g * GROUP, sums[g]);
    const v8s all = (sums[g][0] | sums[g][1]) + (sums[g][2] | sums[g][3]);
    sizes[g] = 0;
    for (int32_t column = 0; column < COLUMNS; column++) sizes[g] += all[column];
    if (g % 2) total += excesses(sums[g - 1], sums[g]);
  }
  for (int32_t chunk = 0; chunk < (groups + 1) / 2; chunk++) {
    int32_t first_one = -1, best = groups, least = INT32_MAX;
    for (int32_t g = 0; g < groups; g++) {
      if (!used[g] && (first_one < 0 || (total && sizes[g] > sizes[first_one]))) first_one = g;
    }
    used[first_one] = 1;
    for (int32_t h = 0; h < groups && least; h++) {
      if (used[h]) continue;
      const int32_t count = excesses(sums[first_one], sums[h]);
      if (count >= least) continue;
      least = count;
      best = h;
    }
    if (best < groups) used[best] = 1;
    *order++ = (uint16_t)(first_one * GROUP);
    *order++ = (uint16_t)(best * GROUP);
  }
  return !total;
}

// Joins chunks to quads where nothing exceeds 16 bits. Gives all chunks, those in quads first, and how many these are.
static int32_t join_chunks(const v8s *w, int32_t chunks, const uint16_t *order, int32_t in_turn, uint8_t *joined) {
  v8s sums[CELLS / 2][4];
  uint8_t used[CELLS / 2] = {};
  int32_t count = 0;
  for (int32_t c = 0; c < chunks; c++) {
    v8s more[4];
    sum_group(w + order[2 * c], sums[c]);
    sum_group(w + order[2 * c + 1], more);
    for (int32_t i = 0; i < 4; i++) sums[c][i] += more[i];
  }
  for (int32_t c = 0; c < chunks; c++) {
    for (int32_t i = c + 1; i < chunks && !used[c]; i++) {
      const int32_t other = in_turn ? i : chunks + c - i;  // else they are sorted: large ones go with small ones
      if (used[other] || excesses(sums[c], sums[other])) continue;
      used[c] = used[other] = 1;
      joined[count++] = (uint8_t)c;
      joined[count++] = (uint8_t)other;
    }
  }
  for (int32_t c = 0, last = count; c < chunks; c++) {
    if (!used[c]) joined[last++] = (uint8_t)c;
  }
  return count;
}
#endif
