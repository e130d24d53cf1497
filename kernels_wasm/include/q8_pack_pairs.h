// How weights become panels of pairs (q8_pairs.h): what their chunks hold, and the corrections.
#pragma once

#include "q8_join.h"

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
  // About how long a tile takes, in halves of a cycle.
  CHUNK_TIME = 30, CORRECTION_TIME = 14, INT16_TIME = 37,  // of int16 in crossed
  NO_STEP = 0x80,
};

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
  int32_t used[2];         // corrections of the lower and the upper columns
  int32_t front, back;     // chunks that are in quads so far, and where the other ones begin
  int32_t in_order;
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

// A panel's steps [k, k + count), at most a segment: their chunks to the panel's weights at `to`, if it is a place.
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
  const int32_t groups = (count + GROUP - 1) / GROUP, chunks = (groups + 1) / 2;
  uint16_t order[CELLS];
  uint8_t joined[CELLS / 2];
  const int32_t in_turn = join_groups(w, groups, order);
  for (int32_t i = 0; i < 2 * chunks; i += 2) {
    v8s *a = w + order[i], *b = w + order[i + 1];
    for (int32_t sign = 0; sign < 2; sign++) {
      hold(a, b);
      hold(a + 2, b + 2);
      for (int32_t j = 0; j < GROUP; j++) {
        a[j] = -a[j];
        b[j] = -b[j];
      }
    }
  }
  const int32_t in_quads = join_chunks(w, chunks, order, in_turn, joined);
  p->back -= chunks - in_quads;
  for (int32_t i = 0; i < 2 * chunks; i++) {
    const int32_t place = i + 2 * (i < 2 * in_quads ? p->front : p->back - in_quads), at = order[2 * joined[i / 2] + i % 2];
    p->order[place] = (uint16_t)(k + at);
    p->in_order &= k + at == place * GROUP;
    for (int32_t j = 0; to && j < GROUP * COLUMNS; j++) {
      to[place * GROUP * COLUMNS + j] = (uint8_t)w[at + j % GROUP][j / GROUP];
    }
  }
  p->front += in_quads;
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
  p->used[0] = p->used[1] = p->front = 0;
  p->back = chunks_of(depth);
  p->in_order = 1;
  p->low = to ? (Correction *)(to + weights_end(depth)) : 0;
  p->high = (Correction *)(to + bytes);
  for (int32_t k = 0; k < depth; k += SEGMENT) {
    split_segment(s, panel, k, depth - k < SEGMENT ? depth - k : SEGMENT, to ? to + HEAD : 0, p, totals);
  }
  if (!to) return;
  uint16_t *order = (uint16_t *)(p->low + p->used[0]);
  *(Paired *)(to + LACKING) =
      (Paired){p->used[0], bytes, p->used[1], p->in_order ? 0 : (int32_t)((uint8_t *)order - to), p->front / 2};
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
