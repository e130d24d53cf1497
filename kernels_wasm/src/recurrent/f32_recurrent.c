// A recurrent layer over a whole sequence: RNN, GRU or LSTM, one direction, step by step.
//
//   sums       [steps, batch, gates*size]  the inputs' share of all gates                 read
//   w          packed by f32_pack_conv_weights with nr = RECURRENT_COLUMNS: recurrent weights and bias  read
//   h, c       [batch, size]  the state and the cells before the first step; 0: zeros     read
//   peepholes  [3, size]      of an LSTM's gates input, output, forget; 0: none           read
//   lengths    [batch]        int32: steps of each sequence; 0: all of them               read
//   work       [batch, work_step]  scratch; work_step is 2*columns + size + 4 with the columns of all panels
//   y          [steps, batch, size]  all states, zeros behind a sequence's end            written
//   last, cells  [batch, size]  the last state, and of an LSTM the last cells (else 0)    written
//   cell       RECURRENT_RNN, _GRU, _LSTM: gates new; update, reset, new; input, output, forget, new
//   rounded    0, RECURRENT_ROUNDED or RECURRENT_SYMMETRIC: what products see of the state, not of a GRU's
//   act, lo, hi  of new values: ACTIVATION_CLAMP (to lo, hi), _SIGMOID or _TANH
//   clip, cell_clip  largest magnitudes of a gate before its function, and of a cell; infinite for none
// Needs: nothing overlaps; steps, batch and size are at least 1.
//
// Units: sequences of the batch.
// Source: onnx v1.23, LSTM-22, GRU-22, RNN-22
#define MR 1
#define NR RECURRENT_COLUMNS
#include "lanes.h"
#include "panel_columns.h"

void f32_round_rows(const float *x, float *y, int32_t r, int32_t symmetric, int32_t begin, int32_t end);

typedef struct {
  const float *sums, *products, *fresh;  // of one step: the inputs' share, the state's, and the state's of new values
  const float *look;
  int32_t size, cell, reset_after, coupled, act;
  float lo, hi, clip, cell_clip;
} Step;

// totals = bias + x w, of the panels from `first` on
static void multiply_state(const float *x, const float *w, float *totals, int32_t size, int32_t first, int32_t panels) {
  for (int32_t p = first; p < panels; p++) {
    v4f acc[MR][NV];
    const float *const rows[MR] = {x};
    multiply(acc, rows, start_tile(acc, w + p * NR * (1 + size)), size);
    UNROLL for (int j = 0; j < NV; j++) v4f_store(totals + p * NR + 4 * j, acc[0][j]);
  }
}

INLINE v4f bounded(v4f v, float most) { return v4f_clamp(v, v4f_splat(-most), v4f_splat(most)); }
static __attribute__((noinline)) v4f opened(v4f v) { return v4f_sigmoid(v); }
INLINE v4f shown(const Step *s, v4f v) {
  return s->act == ACTIVATION_CLAMP ? v4f_clamp(v, v4f_splat(s->lo), v4f_splat(s->hi)) : activate_long(v, s->act);
}
INLINE v4f total(const Step *s, int32_t gate, int32_t u) {
  return v4f_load(s->sums + gate * s->size + u) + v4f_load(s->products + gate * s->size + u);
}
INLINE v4f look(const Step *s, int32_t gate, int32_t u, v4f c) {
  return s->look ? c * v4f_load(s->look + gate * s->size + u) : v4f_splat(0.0f);
}
INLINE v4f gate(const Step *s, int32_t i, int32_t u, v4f seen) {
  return opened(bounded(total(s, i, u) + seen, s->clip));
}

// The next states of four units; `cells` are theirs.
INLINE v4f next_state(const Step *s, int32_t u, v4f h, v4f *cells) {
  const v4f none = v4f_splat(0.0f);
  if (s->cell == RECURRENT_RNN) return shown(s, bounded(total(s, 0, u), s->clip));
  if (s->cell == RECURRENT_GRU) {
    const v4f update = gate(s, 0, u, none), own = v4f_load(s->fresh + 2 * s->size + u);
    const v4f past = s->reset_after ? gate(s, 1, u, none) * own : own;
    const v4f fresh = shown(s, bounded(v4f_load(s->sums + 2 * s->size + u) + past, s->clip));
    return update * h + (1.0f - update) * fresh;
  }
  const v4f keep = gate(s, 2, u, look(s, 2, u, *cells));
  const v4f enter = s->coupled ? 1.0f - keep : gate(s, 0, u, look(s, 0, u, *cells));
  *cells = bounded(keep * *cells + enter * shown(s, bounded(total(s, 3, u), s->clip)), s->cell_clip);
  return gate(s, 1, u, look(s, 1, u, *cells)) * shown(s, *cells);
}

static void set(float *to, const float *from, int32_t count) {
  for (int32_t i = 0; i < count; i++) to[i] = from ? from[i] : 0.0f;
}

void f32_recurrent(const float *restrict sums, const float *restrict w, const float *restrict h,
                   const float *restrict c, const float *restrict peepholes, const int32_t *restrict lengths,
                   float *restrict work, float *restrict y, float *restrict last, float *restrict cells,
                   int32_t work_step, int32_t steps, int32_t batch, int32_t size, int32_t cell, int32_t backward,
                   int32_t reset_after, int32_t coupled, int32_t rounded, int32_t act, float lo, float hi, float clip,
                   float cell_clip, int32_t begin, int32_t end) {
  const int32_t gates = cell == RECURRENT_LSTM ? 4 : cell == RECURRENT_GRU ? 3 : 1;
  const int32_t panels = (gates * size + NR - 1) / NR, twice = cell == RECURRENT_GRU && !reset_after;
  for (int32_t b = begin; b < end; b++) {
    float *products = work + b * work_step, *fresh = products + panels * NR;
    float *state = last + b * size, *own = cells ? cells + b * size : 0, *seen = fresh + panels * NR;
    set(state, h ? h + b * size : 0, size);
    if (own) set(own, c ? c + b * size : 0, size);
    const int32_t count = lengths ? i32_clamp(lengths[b], 0, steps) : steps;
    Step s = {sums, products, twice ? fresh : products, peepholes, size, cell, reset_after, coupled, act, lo, hi, clip,
              cell_clip};
    for (int32_t i = 0; i < count; i++) {
      const int32_t row = (backward ? count - 1 - i : i) * batch + b;
      s.sums = sums + row * gates * size;
      if (rounded) f32_round_rows(state, seen, size, rounded == RECURRENT_SYMMETRIC, 0, 1);
      multiply_state(rounded ? seen : state, w, products, size, 0, twice ? (2 * size + NR - 1) / NR : panels);
      if (twice) {
        for (int32_t u = 0; u < size; u += 4) {
          v4f_store_lanes(seen + u, gate(&s, 1, u, v4f_splat(0.0f)) * v4f_load(state + u), size - u);
        }
        multiply_state(seen, w, fresh, size, 2 * size / NR, panels);
      }
      for (int32_t u = 0; u < size; u += 4) {
        v4f cell_values = own ? v4f_load(own + u) : v4f_splat(0.0f);
        const v4f next = next_state(&s, u, v4f_load(state + u), &cell_values);
        if (own) v4f_store_lanes(own + u, cell_values, size - u);
        v4f_store_lanes(state + u, next, size - u);
        v4f_store_lanes(y + row * size + u, next, size - u);
      }
    }
    for (int32_t t = count; t < steps; t++) set(y + (t * batch + b) * size, 0, size);
  }
}
