// Depthwise sums of bytes, for engines whose dot products of four bytes are exact: one instruction multiplies and adds
// four taps of four channels. A panel says in its head whether its weights came as bytes (q8_pack_weights.c).
//
// A 3x3 window's groups are its columns, from left to right: rows 0, 1, 2 and 1 once more, so that a weight of the
// middle row may take two bytes. Groups of other windows are four taps in their order.
#pragma once

#include "dots.h"
#include "q8_depthwise_line.h"

#if !SIMD || defined(__wasm_relaxed_simd__)
#define WINDOW_BYTES 1
#else
#define WINDOW_BYTES 0
#endif

INLINE int32_t panel_has_bytes(const uint8_t *panel) {
  return WINDOW_BYTES && *(const int32_t *)(panel + LACKING) != NOT_PAIRED;
}

#if WINDOW_BYTES
// Four pixels' bytes side by side, for channels 0..3 and 4..7.
typedef struct {
  v16u half[2];
} Quads;

INLINE v16u bytes_side_by_side(v16u a, v16u b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
INLINE Quads quads_of(v16u a, v16u b, v16u c, v16u d, const int32_t flip) {
  const v8s ab = (v8s)(bytes_side_by_side(a, b) ^ (uint8_t)flip), cd = (v8s)(bytes_side_by_side(c, d) ^ (uint8_t)flip);
  return (Quads){{(v16u)v8s_pairs_low(ab, cd), (v16u)v8s_pairs_high(ab, cd)}};
}

#if SIMD
#define GROUP_CODE INLINE
#else
#define GROUP_CODE static __attribute__((noinline))  // sixteen products one by one: once in the module is enough
#endif

// sums + four taps times group `group` of the panel's weights.
GROUP_CODE v4i add_group(v4i sums, const Quads *x, const uint8_t *panel, const int32_t group, const int half) {
  return v4i_dot4_i8(v16s_load(panel + HEAD + 32 * group + 16 * half), x->half[half], sums);
}

INLINE Quads column_quads(const Line *line, int32_t ix, v16u outside, const int32_t flip) {
  v16u a = outside, b = outside, c = outside;
  if (LIKELY((uint32_t)ix < (uint32_t)line->iw)) {
    const int32_t at = ix * line->c;
    a = v16u_load_half(line->rows[0] + at);
    b = v16u_load_half(line->rows[1] + at);
    c = v16u_load_half(line->rows[2] + at);
  }
  return quads_of(a, b, c, b, flip);
}

// Outputs first, first + step, ... of a row, eight channels, two at once; `ix` is the leftmost column of the first.
INLINE void line_quads_s1(const Line *line, const uint8_t *panel, int32_t ix, int32_t step, int32_t count,
                          const int32_t flip) {
  uint8_t *y = line->y;
  const int32_t c = step * line->c;
  const v16u outside = v16u_load_half(line->pad);
  v4i first[2] = {}, second[2] = {};  // sums that have two of their columns, and one
  NO_UNROLL for (int32_t k = -2; k < count; k += 2, ix += 2 * step) {
    PIN(panel);
    const Quads one = column_quads(line, ix, outside, flip), two = column_quads(line, ix + step, outside, flip);
    v4i ended[2][2];
    UNROLL for (int half = 0; half < 2; half++) {
      const v4i begun = begun_sums(panel, half);
      const v4i last = add_group(first[half], &one, panel, 2, half);
      const v4i next = add_group(add_group(second[half], &one, panel, 1, half), &two, panel, 2, half);
      first[half] = add_group(add_group(begun, &one, panel, 0, half), &two, panel, 1, half);
      second[half] = add_group(begun, &two, panel, 0, half);
      ended[0][half] = ended_sums(line, last, panel, half);
      ended[1][half] = ended_sums(line, next, panel, half);
    }
    if (UNLIKELY(k < 0)) continue;
    put_results(line, y, k + 1 < count ? y + c : 0, ended);
    y += 2 * c;
  }
}

// The same of outputs whose columns begin two apart.
INLINE void line_quads_s2(const Line *line, const uint8_t *panel, int32_t ix, int32_t count, const int32_t flip) {
  uint8_t *y = line->y;
  const int32_t c = line->c;
  const v16u outside = v16u_load_half(line->pad);
  Quads left = column_quads(line, ix, outside, flip);
  NO_UNROLL for (int32_t k = 0; k < count; k += 2) {
    v4i ended[2][2];
    UNROLL for (int i = 0; i < 2; i++) {
      PIN(panel);
      const Quads middle = column_quads(line, ix + 1, outside, flip), right = column_quads(line, ix + 2, outside, flip);
      UNROLL for (int half = 0; half < 2; half++) {
        const v4i sums = add_group(begun_sums(panel, half), &left, panel, 0, half);
        ended[i][half] = ended_sums(
            line, add_group(add_group(sums, &middle, panel, 1, half), &right, panel, 2, half), panel, half);
      }
      left = right;
      ix += 2;
    }
    put_results(line, y, k + 1 < count ? y + c : 0, ended);
    y += 2 * c;
  }
}
#endif
