// Packs dense weights into column panels for the f32_conv2d_nhwc_* and f32_conv_transpose2d_nhwc_* tiles.
//
//   w     read: float32, or float16 bits when stored_f16; the weight of group g, output o, tap t, channel c lies at
//         g * group_stride + (o / inner) * out_stride + (o % inner) * inner_stride + t * tap_stride + c * ci_stride
//   bias  [bias_count]  read; 0 = no bias; output o of group g takes bias[(g * co + o) % bias_count]
//   y     [groups * ceil(co/nr)][nr + taps * ci * nr]  written: a panel is nr biases, then nr weights a tap and channel
//         or, where nr is less than 4, then for each four of these steps the four weights of each output
//
// co and ci are those of one group. Columns past co are zero.  Needs: y overlaps neither w nor bias; taps * ci is a
// multiple of 4 where nr is 2 or 3; nr is at most 32.
// Units: groups * ceil(co / nr) panels.
//
// A load is little but this: outputs side by side are copied, channels side by side are transposed four by four, and
// what lies apart, as ONNX has windows, is gathered a row at a time.
#include "half.h"

#define MOST_COLUMNS 32

typedef struct {
  const void *w;
  int32_t first[MOST_COLUMNS];  // of each column's weights, in elements
  int32_t count, nr;            // columns that there are, and columns of a panel
  int32_t stored_f16;
} Source;

INLINE float weight_at(const Source *s, int32_t at) {
  return s->stored_f16 ? f32_from_f16(((const uint16_t *)s->w)[at]) : ((const float *)s->w)[at];
}

// A row of a panel: the weights `at` elements behind the first ones.
INLINE void gather_row(const Source *s, int32_t at, float *to) {
  for (int32_t j = 0; j < s->count; j++) to[j] = weight_at(s, s->first[j] + at);
  for (int32_t j = s->count; j < s->nr; j++) to[j] = 0.0f;
}

// Four rows of a whole panel, whose channels lie side by side.
INLINE void transpose_rows(const Source *s, int32_t at, float *to) {
  const float *w = (const float *)s->w + at;
  for (int32_t j = 0; j < s->nr; j += 4) {
    const v4f a = v4f_load(w + s->first[j]), b = v4f_load(w + s->first[j + 1]);
    const v4f c = v4f_load(w + s->first[j + 2]), d = v4f_load(w + s->first[j + 3]);
    const v4f ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const v4f AB = __builtin_shufflevector(a, b, 2, 6, 3, 7), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    v4f_store(to + j, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    v4f_store(to + s->nr + j, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    v4f_store(to + 2 * s->nr + j, __builtin_shufflevector(AB, CD, 0, 1, 4, 5));
    v4f_store(to + 3 * s->nr + j, __builtin_shufflevector(AB, CD, 2, 3, 6, 7));
  }
}

INLINE void copy_row(const float *from, float *to, int32_t nr) {
  for (int32_t j = 0; j < nr; j += 4) v4f_store(to + j, v4f_load(from + j));
}

static void pack_columns(const Source *s, float *to, int32_t taps, int32_t ci, int32_t tap_stride, int32_t ci_stride) {
  const int32_t nr = s->nr, whole = s->count == nr && nr % 4 == 0 && !s->stored_f16;
  int32_t adjacent = whole;
  for (int32_t j = 1; j < s->count; j++) adjacent &= s->first[j] == s->first[0] + j;
  for (int32_t tap = 0; tap < taps; tap++) {
    int32_t at = tap * tap_stride, c = 0;
    if (adjacent) {
      const float *from = (const float *)s->w + s->first[0] + at;
      for (; c < ci; c++, to += nr, from += ci_stride) copy_row(from, to, nr);
    } else if (whole && ci_stride == 1) {
      for (; c + 4 <= ci; c += 4, at += 4, to += 4 * nr) transpose_rows(s, at, to);
    }
    for (; c < ci; c++, at += ci_stride, to += nr) gather_row(s, at, to);
  }
}

// Fewer columns than lanes: four rows of each behind one another.
static void pack_deep(const Source *s, float *to, int32_t taps, int32_t ci, int32_t tap_stride, int32_t ci_stride) {
  for (int32_t j = 0; j < s->nr; j++) {
    float *cell = to + 4 * j;
    int32_t k = 0;
    for (int32_t tap = 0; tap < taps; tap++) {
      for (int32_t c = 0; c < ci; c++, cell += ++k & 3 ? 1 : 1 + 4 * (s->nr - 1)) {
        *cell = j < s->count ? weight_at(s, s->first[j] + tap * tap_stride + c * ci_stride) : 0.0f;
      }
    }
  }
}

void f32_pack_conv_weights(const void *restrict w, const float *restrict bias, float *restrict y, int32_t co,
                           int32_t taps, int32_t ci, int32_t nr, int32_t group_stride, int32_t out_stride,
                           int32_t inner, int32_t inner_stride, int32_t tap_stride, int32_t ci_stride,
                           int32_t bias_count, int32_t stored_f16, int32_t begin, int32_t end) {
  const int32_t panels = (co + nr - 1) / nr;
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t group = unit / panels, first = (unit - group * panels) * nr;
    float *panel = y + unit * (nr + taps * ci * nr);
    Source s = {w, {0}, co - first < nr ? co - first : nr, nr, stored_f16};
    for (int32_t j = 0; j < nr; j++) {
      const int32_t out = first + j;
      panel[j] = out < co && bias ? bias[(group * co + out) % bias_count] : 0.0f;
      s.first[j] = group * group_stride + out / inner * out_stride + out % inner * inner_stride;
    }
    if (nr < 4) {
      pack_deep(&s, panel + nr, taps, ci, tap_stride, ci_stride);
    } else {
      pack_columns(&s, panel + nr, taps, ci, tap_stride, ci_stride);
    }
  }
}
