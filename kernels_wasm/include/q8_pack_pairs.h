// How weights become panels of pairs (q8_pairs.h): which groups are joined, what chunks hold, and the corrections.
#pragma once

#include "q8_pairs.h"

typedef struct {
  const uint8_t *w;
  const int32_t *zeros, *order;
  int32_t co, taps, ci, co_step, tap_step, ci_step, w_signed;
} Weights;

// The weight of an output at a step of its sum.
INLINE int32_t weight_at(const Weights *s, int32_t o, int32_t place, int32_t c) {
  const int32_t t = s->order ? s->order[place] : place;
  const uint8_t byte = s->w[o * s->co_step + t * s->tap_step + c * s->ci_step];
  return (s->w_signed ? (int8_t)byte : byte) - s->zeros[o];
}

#if defined(__wasm_relaxed_simd__)
enum {
  SEGMENT = 512,  // steps whose groups may be joined to chunks
  CELLS = SEGMENT / GROUP,
  // About how long a tile takes, in halves of a cycle.
  CHUNK_TIME = 30, CORRECTION_TIME = 14, INT16_TIME = 42,
  NO_STEP = 0x80,
};

INLINE v8s v8s_select(v8s mask, v8s yes, v8s no) { return (yes & mask) | (no & ~mask); }
INLINE v8s above_zero(v8s a) { return v8s_select(a > (v8s){}, a, (v8s){}); }

// Takes off a lane's four weights what it cannot hold of the positive ones, off one of them where that will do.
// Each vector is one step of all columns.
static void hold(v8s *w, v8s *next) {
  v8s *const lane[] = {w, w + 1, next, next + 1}, zero = {};
  v8s excess = v8s_splat(-PAIRS_MOST);
  for (int32_t i = 0; i < 4; i++) excess += above_zero(*lane[i]);
  excess = above_zero(excess);
  for (int32_t i = 0; i < 8; i++) {
    v8s *x = lane[i % 4];
    const v8s there = above_zero(*x), taken = v8s_select(there >= excess, excess, i < 4 ? zero : there);
    *x -= taken;
    excess -= taken;
  }
}

// A panel in the making; without a place it is only measured.
typedef struct {
  Correction *low, *high;  // the place of its first correction and the end of its last one, or 0
  int32_t used[2], in_order;  // used: corrections of the lower and the upper columns
  uint16_t order[PAIRS_DEPTH / GROUP];
} Panel;

INLINE int32_t corrections_of(const Panel *p) { return p->used[0] + p->used[1]; }

// One correction of the window at step k, for half of the columns: what it holds is taken off `rest`.
static void correct_window(Panel *p, int32_t k, v8s *rest, int32_t half) {
  Correction one = {.at = k};
  for (int32_t i = 0; i < WINDOW; i++) one.steps[i] = NO_STEP;
  for (int32_t lane = 0; lane < COLUMNS; lane += 2) {
    const int32_t column = (half * COLUMNS + lane) / 2;
    for (int32_t i = 0, place = lane; i < WINDOW && place < lane + 2; i++) {
      if (!rest[i][column]) continue;
      one.steps[2 * place] = (uint8_t)i;
      one.weights[place++] = rest[i][column];
      rest[i][column] = 0;
    }
  }
  const int32_t number = p->used[half]++;
  if (p->low && p->low + corrections_of(p) <= p->high) *(half ? p->high - number - 1 : p->low + number) = one;
}

// Corrections of what is left at the steps [k, k + count).
static void correct_steps(Panel *p, int32_t k, int32_t count, v8s *rest) {
  for (int32_t half = 0; half < 2; half++) {
    for (int32_t i = 0; i < count; i++) {
      for (;;) {
        const v4i left = (v4i)rest[i];
        if (!(left[2 * half] | left[2 * half + 1])) break;
        correct_window(p, k + i, rest + i, half);
      }
    }
  }
}

// In how many lanes two groups exceed what a chunk holds. Of each group four sums: of positive and of negative weights.
INLINE int32_t excesses(const v8s *a, const v8s *b) {
  v8s count = {};
  for (int32_t i = 0; i < 4; i++) count -= a[i] + b[i] > v8s_splat(PAIRS_MOST);
  int32_t total = 0;
  for (int32_t column = 0; column < COLUMNS; column++) total += count[column];
  return total;
}

// Joins the groups of a segment that begins with `first`, pair by pair, to partners that need few corrections.
static void join_groups(Panel *p, const v8s *w, int32_t first, int32_t groups) {
  v8s sums[CELLS][4];
  uint8_t used[CELLS] = {};
  uint16_t *order = p->order + first;
  for (int32_t g = 0; g < groups; g++, w += GROUP) {
    for (int32_t i = 0; i < 4; i++) {
      const v8s a = w[i / 2 * 2], b = w[i / 2 * 2 + 1];
      sums[g][i] = i % 2 ? above_zero(-a) + above_zero(-b) : above_zero(a) + above_zero(b);
    }
  }
  // Those that have the largest sums choose first, or all in turn where neighbours exceed nothing.
  int32_t sizes[CELLS], total = 0;
  for (int32_t g = 0; g < groups; g++) {
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
    p->in_order &= first_one == 2 * chunk && best == first_one + 1;
    *order++ = (uint16_t)((first + first_one) * GROUP);
    *order++ = (uint16_t)((first + best) * GROUP);
  }
}

// A panel's steps [k, k + count), at most a segment: their chunks to `to`, if it is a place.
static void split_segment(const Weights *s, int32_t panel, int32_t k, int32_t count, uint8_t *to, Panel *p,
                          int32_t *totals) {
  v8s w[SEGMENT + CHUNK] = {}, rest[SEGMENT + WINDOW] = {};
  for (int32_t i = 0; i < count; i++) {
    const int32_t place = (k + i) / s->ci, c = (k + i) % s->ci;
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column, weight = o < s->co ? weight_at(s, o, place, c) : 0;
      w[i][column] = (int16_t)weight;
      totals[column] += weight;
    }
    rest[i] = w[i];
  }
  const int32_t groups = (count + GROUP - 1) / GROUP;
  join_groups(p, w, k / GROUP, groups);
  const uint16_t *order = p->order + k / GROUP;
  for (int32_t chunk = 0; chunk < (groups + 1) / 2; chunk++) {
    for (int32_t sign = 0; sign < 2; sign++) {
      v8s *a = w + *order - k, *b = w + order[1] - k;
      hold(a, b);
      hold(a + 2, b + 2);
      for (int32_t i = 0; i < GROUP; i++) {
        a[i] = -a[i];
        b[i] = -b[i];
      }
    }
    for (int32_t group = 0; group < 2; group++, order++) {
      const v8s *from = w + *order - k;
      for (int32_t i = 0; to && i < GROUP * COLUMNS; i++) *to++ = (uint8_t)from[i % GROUP][i / GROUP];
    }
  }
  for (int32_t i = 0; i < count; i++) rest[i] -= w[i];
  correct_steps(p, k, count, rest);
}

// Bytes of a panel's weights with their head, and of the whole.
INLINE int32_t weights_end(int32_t depth) { return HEAD + chunks_of(depth) * CHUNK_BYTES; }
INLINE int32_t bytes_of(const Panel *p, int32_t depth) {
  return weights_end(depth) + corrections_of(p) * (int32_t)sizeof(Correction) +
         (p->in_order ? 0 : chunks_of(depth) * 4);
}

// A panel, measured or written at `to`, where it has `bytes`.
static void split_panel(const Weights *s, int32_t panel, uint8_t *to, int32_t bytes, int32_t *totals, Panel *p) {
  const int32_t depth = s->taps * s->ci;
  p->used[0] = p->used[1] = 0;
  p->in_order = 1;
  p->low = to ? (Correction *)(to + weights_end(depth)) : 0;
  p->high = (Correction *)(to + bytes);
  for (int32_t k = 0; k < depth; k += SEGMENT) {
    split_segment(s, panel, k, depth - k < SEGMENT ? depth - k : SEGMENT, to ? to + HEAD + k * COLUMNS : 0, p, totals);
  }
  if (!to) return;
  uint16_t *order = (uint16_t *)(p->low + p->used[0]);
  *(Paired *)(to + LACKING) =
      (Paired){p->used[0], bytes, p->used[1], p->in_order ? 0 : (int32_t)((uint8_t *)order - to)};
  for (int32_t i = 0; !p->in_order && i < 2 * chunks_of(depth); i++) order[i] = p->order[i];
}

// The bytes of all panels in pairs, or 0 where those of int16 are as fast or shorter; `ends` of the panels.
static int32_t weighed(const Weights *s, int32_t *ends) {
  const Form wide = {.size = 2};
  const int32_t depth = s->taps * s->ci, panels = (s->co + COLUMNS - 1) / COLUMNS, chunks = chunks_of(depth);
  int32_t time = 0, bytes = 0;
  if (byte_dots() != BYTES_INEXACT || !byte_pairs() || depth < GROUP || depth > PAIRS_DEPTH) return 0;
  for (int32_t panel = 0; panel < panels; panel++) {
    int32_t totals[COLUMNS] = {};
    Panel p;
    split_panel(s, panel, 0, 0, totals, &p);
    ends[panel] = bytes += bytes_of(&p, depth);
    time += chunks * CHUNK_TIME + corrections_of(&p) * CORRECTION_TIME;
    if (time > chunks * INT16_TIME * (panel + PANELS_TRIED)) return 0;
  }
  return time < chunks * INT16_TIME * panels && bytes <= panels * panel_bytes(&wide, depth) ? bytes : 0;
}

INLINE void put_pairs(const Weights *s, int32_t panel, uint8_t *to, int32_t bytes, int32_t *totals) {
  Panel p;
  split_panel(s, panel, to, bytes, totals, &p);
}
#else
INLINE void put_pairs(const Weights *s, int32_t panel, uint8_t *to, int32_t bytes, int32_t *totals) {
  (void)s, (void)panel, (void)to, (void)bytes, (void)totals;  // nobody calls it
}
INLINE int32_t weighed(const Weights *s, int32_t *ends) {
  (void)s, (void)ends;
  return 0;
}
#endif
