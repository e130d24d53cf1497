// Quantised depthwise convolution, NHWC, 3x3 window, one output for each channel; horizontal stride 1 with any
// dilation, or 2 without.
//
//   x  [n, ih, iw, c]  bytes, read up to 7 bytes past the end      w    panels of q8_pack_weights with ci = 1
//   y  [n, oh, ow, c]  bytes, written                              pad  [iw * c + 8] bytes of x's stored zero, read
//   x_flip, y_flip     0x80 for int8, 0 for uint8                  lo, hi, y_zero  as in requantize.h
//
// A column of three pixels is read once and added to every output that it belongs to. One instruction multiplies and
// adds two taps: of rows 0 and 1 in the same column, and of row 2 in neighbours. The panels hold the taps in the order
//   Q8_TAPS_3X3_S1:  0 3, 1 4, 2 5, 8 7, 6 -          Q8_TAPS_3X3_S2:  0 3, 1 4, 2 5, 6 7, 8 -
// Where dot products of bytes are exact, panels have bytes and one instruction four taps (q8_window_quads.h).
//
// Needs: x and y do not overlap. Units: output rows, n * oh.
#include "q8_window_quads.h"

enum { TAPS = HEAD / 2, PANEL = HEAD + 20 * COLUMNS };  // TAPS: of a panel as int16, where its weights begin

typedef struct {
  v4i low, high;  // channels 0..3 and 4..7
} Sums;

// s += pairs * the panel's weights of pair number `tap`.
INLINE void add(Sums *s, v8s low, v8s high, const int16_t *panel, const int32_t tap) {
  s->low += v4i_dot_i16(low, v8s_load(panel + TAPS + 2 * COLUMNS * tap));
  s->high += v4i_dot_i16(high, v8s_load(panel + TAPS + 2 * COLUMNS * tap + COLUMNS));
}

INLINE Sums start(const int16_t *panel) { return (Sums){v4i_load(panel), v4i_load(panel + 8)}; }

INLINE void finish(const Line *line, Sums s, const int16_t *panel, uint8_t *y) {
  const v4i low = ended_sums(line, s.low, (const uint8_t *)panel, 0);
  const v4i high = ended_sums(line, s.high, (const uint8_t *)panel, 1);
  store_bytes(y, stored_bytes(low, high, &line->stored), line->columns);
}

#if SIMD
// A column of three pixels, as pairs: rows 0 and 1, and row 2 with that of the column before.
typedef struct {
  v8s ab[2], dl[2];
} Column;

INLINE Column column_at(const Line *line, int32_t ix, v8s *last, const v8s outside, const int32_t flip) {
  v8s a = outside, b = outside, d = outside;
  if (LIKELY((uint32_t)ix < (uint32_t)line->iw)) {
    const int32_t at = ix * line->c;
    a = load_shorts(line->rows[0] + at, flip);
    b = load_shorts(line->rows[1] + at, flip);
    d = load_shorts(line->rows[2] + at, flip);
  }
  const Column column = {{v8s_pairs_low(a, b), v8s_pairs_high(a, b)}, {v8s_pairs_low(d, *last), v8s_pairs_high(d, *last)}};
  *last = d;
  return column;
}

// first += one * w, second += other * w, with w of the panel's pair number `tap`: loaded once for both.
INLINE void add_both(v4i *first, v8s one, v4i *second, v8s other, const int16_t *panel, const int32_t tap,
                     const int half) {
  v8s w = v8s_load(panel + TAPS + 2 * COLUMNS * tap + COLUMNS * half);
  PIN(w);
  *first += v4i_dot_i16(one, w);
  *second += v4i_dot_i16(other, w);
  PIN(*first);
  PIN(*second);
}

// Outputs first, first + step, ... of a row, eight channels; `ix` is the leftmost column of the first. Two columns at
// once end two outputs, go into the third, and begin the fourth.
INLINE void line_s1(const Line *line, const int16_t *panel, int32_t ix, int32_t step, int32_t count,
                    const int32_t flip) {
  uint8_t *y = line->y;
  const int32_t c = step * line->c;
  const v8s outside = load_shorts(line->pad, flip);
  v4i third[2] = {}, fourth[2] = {};
  v8s last = outside;
  NO_UNROLL for (int32_t k = -2; k < count; k += 2, ix += 2 * step) {
    PIN(panel);
    const Column one = column_at(line, ix, &last, outside, flip), two = column_at(line, ix + step, &last, outside, flip);
    v4i ended[2][2];
    UNROLL for (int half = 0; half < 2; half++) {
      v4i first = third[half], second = fourth[half];
      add_both(&first, one.ab[half], &second, two.ab[half], panel, 2, half);
      add_both(&first, one.dl[half], &second, two.dl[half], panel, 3, half);
      v4i begun = v4i_load(panel + 8 * half), next = begun;
      add_both(&second, one.ab[half], &begun, two.ab[half], panel, 1, half);
      add_both(&begun, one.ab[half], &next, two.ab[half], panel, 0, half);
      add_both(&begun, one.dl[half], &next, two.dl[half], panel, 4, half);
      third[half] = begun;
      fourth[half] = next;
      ended[0][half] = ended_sums(line, first, (const uint8_t *)panel, half);
      ended[1][half] = ended_sums(line, second, (const uint8_t *)panel, half);
    }
    if (UNLIKELY(k < 0)) continue;
    put_results(line, y, k + 1 < count ? y + c : 0, ended);
    y += 2 * c;
  }
}
#else
// Outputs first, first + step, ... of a row, eight channels; `ix` is the leftmost column of the first.
INLINE void line_s1(const Line *line, const int16_t *panel, int32_t ix, int32_t step, int32_t count,
                    const int32_t flip) {
  const uint8_t *r0 = line->rows[0], *r1 = line->rows[1], *r2 = line->rows[2];
  uint8_t *y = line->y;
  const int32_t c = line->c, iw = line->iw;
  const v8s outside = load_shorts(line->pad, flip);
  Sums s0 = {{}, {}}, s1 = s0;
  v8s last = outside;
  NO_UNROLL for (int32_t k = -2; k < count; k++, ix += step) {
    v8s a = outside, b = outside, d = outside;
    if (LIKELY((uint32_t)ix < (uint32_t)iw)) {
      const int32_t at = ix * c;
      a = load_shorts(r0 + at, flip);
      b = load_shorts(r1 + at, flip);
      d = load_shorts(r2 + at, flip);
    }
    PIN(panel);
    const v8s ab_low = v8s_pairs_low(a, b), ab_high = v8s_pairs_high(a, b);
    const v8s dl_low = v8s_pairs_low(d, last), dl_high = v8s_pairs_high(d, last);
    last = d;
    add(&s0, ab_low, ab_high, panel, 2);
    add(&s0, dl_low, dl_high, panel, 3);
    if (LIKELY(k >= 0)) {
      finish(line, s0, panel, y);
      y += step * c;
    }
    add(&s1, ab_low, ab_high, panel, 1);
    s0 = s1;
    s1 = start(panel);
    add(&s1, ab_low, ab_high, panel, 0);
    add(&s1, dl_low, dl_high, panel, 4);
  }
}
#endif

// Outputs 0, 1, ... of a row, eight channels; `ix` is the leftmost column of the first.
INLINE void line_s2(const Line *line, const int16_t *panel, int32_t ix, int32_t count, const int32_t flip) {
  const uint8_t *r0 = line->rows[0], *r1 = line->rows[1], *r2 = line->rows[2];
  uint8_t *y = line->y;
  const int32_t c = line->c, iw = line->iw;
  const v8s outside = load_shorts(line->pad, flip);
  Sums s0 = {{}, {}};
  NO_UNROLL for (int32_t k = -1; k < count; k++, ix += 2) {
    const int32_t at = ix * c;
    v8s a = outside, b = outside, d = outside;
    if (LIKELY((uint32_t)ix < (uint32_t)iw)) {
      a = load_shorts(r0 + at, flip);
      b = load_shorts(r1 + at, flip);
      d = load_shorts(r2 + at, flip);
    }
    PIN(panel);
    const v8s ab_low = v8s_pairs_low(a, b), ab_high = v8s_pairs_high(a, b);
    a = b = outside;
    v8s e = outside;
    if (LIKELY((uint32_t)(ix + 1) < (uint32_t)iw)) {
      a = load_shorts(r0 + at + c, flip);
      b = load_shorts(r1 + at + c, flip);
      e = load_shorts(r2 + at + c, flip);
    }
    const v8s de_low = v8s_pairs_low(d, e), de_high = v8s_pairs_high(d, e);
    add(&s0, ab_low, ab_high, panel, 2);
    add(&s0, de_low, de_high, panel, 4);
    if (LIKELY(k >= 0)) {
      finish(line, s0, panel, y);
      y += c;
    }
    s0 = start(panel);
    add(&s0, ab_low, ab_high, panel, 0);
    add(&s0, de_low, de_high, panel, 3);
    add(&s0, v8s_pairs_low(a, b), v8s_pairs_high(a, b), panel, 1);
  }
}

typedef void OneLine(const Line *line, const uint8_t *panel, int32_t ix, int32_t step, int32_t count, int32_t flip);

#if SIMD
#define IF_PLAIN(CALL) if (!flip) return CALL  // uint8, its own code
#else
#define IF_PLAIN(CALL) (void)0
#endif
static __attribute__((noinline)) void one_line_s1(const Line *line, const uint8_t *panel, int32_t ix, int32_t step,
                                                  int32_t count, int32_t flip) {
#if WINDOW_BYTES
  if (panel_has_bytes(panel)) {
    IF_PLAIN(line_quads_s1(line, panel, ix, step, count, 0));
    return line_quads_s1(line, panel, ix, step, count, flip);
  }
#endif
  IF_PLAIN(line_s1(line, (const int16_t *)panel, ix, step, count, 0));
  line_s1(line, (const int16_t *)panel, ix, step, count, flip);
}
static __attribute__((noinline)) void one_line_s2(const Line *line, const uint8_t *panel, int32_t ix, int32_t step,
                                                  int32_t count, int32_t flip) {
  (void)step;
#if WINDOW_BYTES
  if (panel_has_bytes(panel)) return line_quads_s2(line, panel, ix, count, flip);
#endif
  IF_PLAIN(line_s2(line, (const int16_t *)panel, ix, count, 0));
  line_s2(line, (const int16_t *)panel, ix, count, flip);
}

typedef struct {
  const uint8_t *x, *w;
  uint8_t *y;
  const uint8_t *pad;
  int32_t ih, iw, c, oh, ow, sh, dh, dw, pad_top, pad_left, x_flip, byte_flip;
  Stored stored;
} Depthwise;

INLINE void rows(const Depthwise *d, OneLine *one_line, int32_t begin, int32_t end) {
  Line line = {.pad = d->pad, .iw = d->iw, .c = d->c, .stored = d->stored};
  for (int32_t row = begin; row < end; row++) {
    const int32_t image = row / d->oh, top = row % d->oh * d->sh - d->pad_top;
    const uint8_t *panel = d->w;
    for (int32_t first = 0; first < d->c; first += COLUMNS, panel += PANEL) {
      for (int32_t r = 0; r < 3; r++) {
        const int32_t iy = top + r * d->dh, inside = iy >= 0 && iy < d->ih;
        line.rows[r] = (inside ? d->x + (image * d->ih + iy) * d->iw * d->c : d->pad) + first;
      }
      line.columns = d->c - first;
      const int32_t flip = panel_has_bytes(panel) ? d->byte_flip : d->x_flip;
      for (int32_t ox = 0; ox < d->dw && ox < d->ow; ox++) {  // the outputs that share columns lie dw apart
        line.y = d->y + (row * d->ow + ox) * d->c + first;
        one_line(&line, panel, ox - d->pad_left, d->dw, (d->ow - ox + d->dw - 1) / d->dw, flip);
      }
    }
  }
}

#define DEPTHWISE(NAME, ONE_LINE)                                                                                   \
  void NAME(const uint8_t *restrict x, const uint8_t *restrict w, uint8_t *restrict y, const uint8_t *restrict pad, \
            int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow, int32_t sh, int32_t dh, int32_t dw,          \
            int32_t pad_top, int32_t pad_left, int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo, float hi,  \
            int32_t begin, int32_t end) {                                                                           \
    const Stored stored = stored_as(lo, hi, y_zero, y_flip);                                                        \
    const int32_t byte_flip = form_of(x_flip, 0, 0).flip;                                                           \
    const Depthwise d = {x, w, y, pad, ih, iw, c, oh, ow, sh, dh, dw, pad_top, pad_left, x_flip, byte_flip, stored}; \
    rows(&d, ONE_LINE, begin, end);                                                                                 \
  }

DEPTHWISE(q8_depthwise_nhwc_3x3_s1, one_line_s1)
DEPTHWISE(q8_depthwise_nhwc_3x3_s2, one_line_s2)
