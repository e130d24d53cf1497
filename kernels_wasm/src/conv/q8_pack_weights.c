// Packs 8-bit weights into panels of 8 outputs for q8_conv2d_nhwc, q8_matmul_f32 and q8_depthwise_nhwc.
//
// q8_pack_weights
//   w       weight (output o, tap t, channel c) is the byte w[o*co_step + t*tap_step + c*ci_step]   read
//   order   [taps] int32, the tap that comes at each place of a panel, or 0 for theirs   read
//   bias    [co] int32 or 0      scales [co] float32      zeros [co] int32, the weights' zero points   read
//   paired  what q8_weigh_pairs said of these weights, or 0   read
//   dense   whether a product of bytes may take them, where this engine's dot products of bytes are exact
//   y       [ceil(co/8)] panels written: 8 int32 sums to start from, 8 float32 scales, 8 int32 that every weight of
//           a column lacks, then the weights by k = place*ci + c: for each pair of k 8 columns of 2 int16, or for each
//           four of k 8 columns of 4 int8. Columns past co, and k past the last one, are zero.
//
// A weight that is no int8 lacks something: its column's sum lacks that times the sum of x. In pairs (q8_pairs.h)
// weights lack nothing; the first of the 8 int32 says how many corrections follow the weights. In int16 it is
// NOT_PAIRED.
// The sums start at bias - x_zero * sum(w - zero), so that a kernel multiplies x as it is stored. x_zero belongs to the
// uint8 form of x. Needs: y overlaps nothing that is read.
// Units: panels, ceil(co / 8).
//
// q8_weigh_pairs
//   y       [1] int32 written: 1 if products in pairs are exact here and pay, corrections included, else 0
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
INLINE v8s v8s_select(v8s mask, v8s yes, v8s no) { return (yes & mask) | (no & ~mask); }

// What of `count` weights a lane can hold, each vector one step of all columns: the first ones whole, of the last ones
// what is left of PAIRS_MOST.
INLINE void held(const v8s *w, v8s *to, const int32_t *at, const int32_t count) {
  v8s above = v8s_splat(PAIRS_MOST), below = v8s_splat(-PAIRS_MOST);
  for (int32_t i = 0; i < count; i++) {
    const v8s x = w[at[i]], cut = v8s_select(x > above, above, v8s_select(x < below, below, x));
    above -= v8s_select(cut > (v8s){}, cut, (v8s){});
    below -= v8s_select(cut < (v8s){}, cut, (v8s){});
    to[at[i]] = cut;
  }
}

// Four steps of all columns as a group.
INLINE void put_group(const v8s *w, uint8_t *to) {
  for (int32_t column = 0; column < COLUMNS; column++) {
    for (int32_t i = 0; i < GROUP; i++) *to++ = (uint8_t)w[i][column];
  }
}

// A panel's steps [k, k + CHUNK): their weights to `to`, their corrections from `end` on, or neither. The number of
// corrections; `most + 1` if they are more. `totals` grow by the weights.
static int32_t split_chunk(const Weights *s, int32_t panel, int32_t k, uint8_t *to, uint8_t *end, int32_t most,
                           int32_t *totals) {
  v8s w[CHUNK], part[CHUNK];
  for (int32_t i = 0; i < CHUNK; i++) {
    w[i] = (v8s){};
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column, place = (k + i) / s->ci;
      if (o >= s->co || place >= s->taps) continue;
      const int32_t weight = weight_at(s, o, place, (k + i) % s->ci);
      w[i][column] = (int16_t)weight;
      totals[column] += weight;
    }
  }
  held(w, part, (const int32_t[]){0, 1, 4, 5}, 4);
  held(w, part, (const int32_t[]){2, 3, 6, 7}, 4);
  if (to) {
    put_group(part, to);
    put_group(part + GROUP, to + GROUP * COLUMNS);
  }
  int32_t count = 0;
  for (int32_t group = 0; group < 2; group++) {
    v8s *rest = w + group * GROUP, *held_now = part + group * GROUP;
    for (;;) {
      v8s left = {};
      for (int32_t i = 0; i < GROUP; i++) left |= rest[i] -= held_now[i];
      if (!v4i_any((v4i)left)) break;
      if (++count > most) return count;
      held(rest, held_now, (const int32_t[]){0, 1}, 2);
      held(rest, held_now, (const int32_t[]){2, 3}, 2);
      if (!end) continue;
      *(int32_t *)end = k / GROUP + group;
      put_group(held_now, end + 4);
      end += CORRECTION;
    }
  }
  return count;
}

// How many corrections a panel has room for.
INLINE int32_t room_of(int32_t depth) {
  const Form form = {1, 0, 0, 1};
  return (panel_bytes(&form, depth) - HEAD - chunks_of(depth) * 2 * GROUP * COLUMNS) / CORRECTION;
}

// The number of corrections, at most `most`, and whatever else a panel holds if there is a place for it.
static int32_t split_panel(const Weights *s, int32_t panel, uint8_t *to, int32_t most, int32_t *totals) {
  const int32_t depth = s->taps * s->ci;
  uint8_t *end = to ? to + HEAD + chunks_of(depth) * 2 * GROUP * COLUMNS : 0;
  int32_t count = 0;
  to = to ? to + HEAD : 0;
  for (int32_t k = 0; k < depth && count <= most; k += CHUNK) {
    const int32_t more = split_chunk(s, panel, k, to, end, most - count, totals);
    count += more;
    to = to ? to + 2 * GROUP * COLUMNS : 0;
    end = end ? end + more * CORRECTION : 0;
  }
  return count;
}

// A chunk in pairs takes two thirds of the time of int16, a correction nearly all of it.
static int32_t pairs_pay(const Weights *s) {
  const int32_t depth = s->taps * s->ci, room = room_of(depth), panels = (s->co + COLUMNS - 1) / COLUMNS;
  int32_t count = 0;
  if (byte_dots() != BYTES_INEXACT || !byte_pairs() || depth < GROUP || depth > PAIRS_DEPTH) return 0;
  for (int32_t panel = 0; panel < panels; panel++) {
    int32_t totals[COLUMNS] = {};
    const int32_t more = split_panel(s, panel, 0, room, totals);
    if (more > room) return 0;
    count += more;
    if (5 * count > 2 * chunks_of(depth) * (panel + PANELS_TRIED)) return 0;
  }
  return 5 * count < 2 * chunks_of(depth) * panels;
}
#else
INLINE int32_t split_panel(const Weights *s, int32_t panel, uint8_t *to, int32_t most, int32_t *totals) {
  (void)s, (void)panel, (void)to, (void)most, (void)totals;
  return 0;  // nobody calls it
}
INLINE int32_t room_of(int32_t depth) { return depth; }
INLINE int32_t pairs_pay(const Weights *s) {
  (void)s;
  return 0;
}
#endif

void q8_weigh_pairs(const uint8_t *restrict w, const int32_t *restrict zeros, int32_t *restrict y, int32_t co,
                    int32_t taps, int32_t ci, int32_t co_step, int32_t tap_step, int32_t ci_step, int32_t w_signed) {
  const Weights s = {w, zeros, 0, co, taps, ci, co_step, tap_step, ci_step, w_signed};
  *y = pairs_pay(&s);
}

// A panel's weights as bytes or int16. `totals` grow by the weights.
static void put_panel(const Weights *s, int32_t panel, const Form *form, uint8_t *to, int32_t *totals) {
  int32_t *lacking = (int32_t *)(to + LACKING);
  for (int32_t column = 0; column < COLUMNS; column++) {
    const int32_t o = panel * COLUMNS + column;
    if (o >= s->co) continue;
    const int32_t lacks = form->size == 2 ? 0 : s->w_signed ? -s->zeros[o] : 128 - s->zeros[o];
    int32_t k = 0;
    for (int32_t place = 0; place < s->taps; place++) {
      for (int32_t c = 0; c < s->ci; c++, k++) {
        const int32_t weight = weight_at(s, o, place, c), kept = weight - lacks, at = k * form->size;
        uint8_t *cell = to + HEAD + (at / GROUP * COLUMNS + column) * GROUP + at % GROUP;
        cell[0] = (uint8_t)kept;
        if (form->size == 2) cell[1] = (uint8_t)(kept >> 8);
        totals[column] += weight;
      }
    }
    lacking[column] = lacks;
  }
  if (form->size == 2) lacking[0] = NOT_PAIRED;
}

void q8_pack_weights(const uint8_t *restrict w, const int32_t *restrict bias, const float *restrict scales,
                     const int32_t *restrict zeros, const int32_t *restrict order, const int32_t *restrict paired,
                     uint8_t *restrict y, int32_t co, int32_t taps, int32_t ci, int32_t co_step, int32_t tap_step,
                     int32_t ci_step, int32_t w_signed, int32_t x_zero, int32_t dense, int32_t begin, int32_t end) {
  const Weights s = {w, zeros, order, co, taps, ci, co_step, tap_step, ci_step, w_signed};
  const Form form = dense ? form_of(0, x_zero, paired && *paired) : (Form){2, 0, x_zero, 0};
  const int32_t depth = taps * ci, bytes = panel_bytes(&form, depth);
  for (int32_t panel = begin; panel < end; panel++) {
    uint8_t *to = y + panel * bytes;
    int32_t *sums = (int32_t *)to, totals[COLUMNS] = {};
    float *factors = (float *)(sums + COLUMNS);
    for (int32_t i = 0; i < bytes; i++) to[i] = 0;
    if (IS_PAIRED(&form)) {
      *(int32_t *)(to + LACKING) = split_panel(&s, panel, to, room_of(depth), totals);
    } else {
      put_panel(&s, panel, &form, to, totals);
    }
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column;
      sums[column] = o < co ? (bias ? bias[o] : 0) - form.zero * totals[column] : 0;
      factors[column] = o < co ? scales[o] : 0.0f;
    }
  }
}
