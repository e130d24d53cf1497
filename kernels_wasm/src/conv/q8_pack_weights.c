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
//           four of k 8 columns of 4 int8. Columns past co, and k past the last one, are zero. In a dense product's
//           int16 each two pairs of k have changed places (multiply_crossed in q8_tile.h). Of one filter a channel
//           panels whose weights are bytes have groups of four taps where dot products of bytes are exact, and as
//           many bytes as if they had int16 (q8_window_quads.h).
//
// A weight that is no int8 lacks something: its column's sum lacks that times the sum of x. In pairs (q8_pairs.h)
// weights lack nothing, and the 8 int32 say what else the panel has. In int16 the first is NOT_PAIRED.
// The sums start at bias - x_zero * sum(w - zero), so that a kernel multiplies x as it is stored. x_zero belongs to the
// uint8 form of x. Needs: y overlaps nothing that is read.
// Units: panels, ceil(co / 8).
//
// q8_weigh_pairs
//   y       [1 + panels] int32 written: the bytes of all panels in pairs where these are exact and pay, else 0; then
//           where each panel ends
#include "q8_pack_pairs.h"

void q8_weigh_pairs(const uint8_t *restrict w, const int32_t *restrict zeros, int32_t *restrict y, int32_t co,
                    int32_t taps, int32_t ci, int32_t co_step, int32_t tap_step, int32_t ci_step, int32_t w_signed) {
  const Weights s = {w, zeros, 0, co, taps, ci, co_step, tap_step, ci_step, w_signed};
  *y = weighed(&s, y + 1);
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
        uint8_t *cell = to + HEAD + ((at / GROUP ^ form->crossed) * COLUMNS + column) * GROUP + at % GROUP;
        cell[0] = (uint8_t)kept;
        if (form->size == 2) cell[1] = (uint8_t)(kept >> 8);
        totals[column] += weight;
      }
    }
    lacking[column] = lacks;
  }
  for (int32_t g = 0; form->crossed && g < groups_of(form, s->taps * s->ci) * COLUMNS; g += 2 * COLUMNS) {
    const int16_t *w = (const int16_t *)(to + HEAD + g * GROUP);
    for (int32_t i = 0; i < 2 * COLUMNS; i++) ((int32_t *)to)[i / 2] -= w[i] * w[i + 2 * COLUMNS];
  }
  if (form->size == 2) lacking[0] = NOT_PAIRED;
}

// One filter a channel as bytes (q8_window_quads.h). Without a place `to` only whether all weights are such; `totals`
// grow by the weights.
static int32_t put_window(const Weights *s, int32_t panel, uint8_t *to, int32_t *totals) {
  for (int32_t column = 0; column < COLUMNS && panel * COLUMNS + column < s->co; column++) {
    for (int32_t place = 0; place < s->taps; place++) {
      const int32_t weight = weight_at(s, panel * COLUMNS + column, place, 0), kept = i32_clamp(weight, -128, 127);
      const int32_t rest = weight - kept, tap = s->order ? s->order[place] : place;
      const int32_t group = s->order ? tap % 3 : tap / GROUP, byte = s->order ? tap / 3 : tap % GROUP;
      const int32_t is_middle = s->order && byte == 1;
      if (rest && !(is_middle && rest <= 127)) return 0;
      if (!to) continue;
      uint8_t *cell = to + HEAD + (group * COLUMNS + column) * GROUP;
      cell[byte] = (uint8_t)kept;
      if (is_middle) cell[GROUP - 1] = (uint8_t)rest;
      totals[column] += weight;
    }
  }
  return 1;
}

void q8_pack_weights(const uint8_t *restrict w, const int32_t *restrict bias, const float *restrict scales,
                     const int32_t *restrict zeros, const int32_t *restrict order, const int32_t *restrict paired,
                     uint8_t *restrict y, int32_t co, int32_t taps, int32_t ci, int32_t co_step, int32_t tap_step,
                     int32_t ci_step, int32_t w_signed, int32_t x_zero, int32_t dense, int32_t begin, int32_t end) {
  const Weights s = {w, zeros, order, co, taps, ci, co_step, tap_step, ci_step, w_signed};
  const Form form = dense ? form_of(0, x_zero, paired ? *paired : 0) : (Form){2, 0, x_zero, 0, 0};
  const Form window_form = form_of(0, x_zero, 0);
  const int32_t depth = taps * ci, bytes = panel_bytes(&form, depth);
  for (int32_t panel = begin; panel < end; panel++) {
    const int32_t in_bytes = !dense && !IS_WIDE(&window_form) && put_window(&s, panel, 0, 0);
    const int32_t zero = in_bytes ? window_form.zero : form.zero;
    const int32_t start = !IS_PAIRED(&form) ? panel * bytes : panel ? paired[panel] : 0;
    const int32_t size = IS_PAIRED(&form) ? paired[panel + 1] - start : bytes;
    uint8_t *to = y + start;
    int32_t *sums = (int32_t *)to, totals[COLUMNS] = {};
    float *factors = (float *)(sums + COLUMNS);
    for (int32_t i = 0; i < size; i++) to[i] = 0;
    if (IS_PAIRED(&form)) {
      put_pairs(&s, panel, to, size, totals);
    } else if (in_bytes) {
      put_window(&s, panel, to, totals);
    } else {
      put_panel(&s, panel, &form, to, totals);
    }
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column;
      sums[column] += o < co ? (bias ? bias[o] : 0) - zero * totals[column] : 0;
      factors[column] = o < co ? scales[o] : 0.0f;
    }
  }
}
