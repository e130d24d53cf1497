// Rows of heads into a cache of whole numbers: each head of a row becomes some from -MOST to MOST times a scale. The
// cache has blocks of SIDE positions: their scales, then their numbers, in pairs that attention multiplies together.
//
//   x      [rows, heads, width]  read
//   place  position of the first row, and how many rows count
//   y      [heads, capacity/SIDE] blocks of SIDE float scales and SIDE * width numbers of 16 bits: element d of a
//          block's row j is at d/2 * 2*SIDE + 2*j + d%2, with `values` at j/2 * 2*width + 2*d + j%2
//
//   bytes  of a position of a head: 4 + 2*width
//
// Needs: width % 4 == 0, capacity % SIDE == 0; a position and count whose rows the cache holds, else nothing is
// written.
// Units: rows.
#include "lanes.h"
#include "small.h"

#define SIDE ATTENTION_CACHED_SIDE
#define MOST ATTENTION_CACHED_MOST

SMALL void i16_cache_rows(const float *restrict x, const int32_t *place, int16_t *restrict y, int32_t rows,
                          int32_t heads, int32_t width, int32_t capacity, int32_t bytes, int32_t values,
                          int32_t begin, int32_t end) {
  (void)rows;
  const int32_t first = place[0], block = SIDE * bytes / 2;
  if (place[1] < end) end = place[1];
  if (first < 0 || end > capacity - first) return;
  for (int32_t i = begin; i < end; i++) {
    const int32_t j = (first + i) % SIDE;
    for (int32_t h = 0; h < heads; h++) {
      const float *from = x + (i * heads + h) * width;
      int16_t *to = y + (h * (capacity / SIDE) + (first + i) / SIDE) * block;
      v4f most = v4f_splat(0.0f);
      for (int32_t d = 0; d < width; d += 4) most = v4f_max(most, v4f_abs(v4f_load(from + d)));
      const float top = FOLD(v4f_max, most)[0], inverse = top > 0.0f ? MOST / top : 0.0f;
      ((float *)to)[j] = top / MOST;
      to += 2 * SIDE + (values ? j / 2 * 2 * width + j % 2 : 2 * j);
      for (int32_t d = 0; d < width; d += 4) {
        const v4i rounded = v4i_from_f32(v4f_round_even(v4f_load(from + d) * inverse));
        const v4i q = v4i_clamp(rounded, v4i_splat(-MOST), v4i_splat(MOST));
        const int32_t pair = values ? 4 : 2 * SIDE, one = values ? 2 : 1;
        int16_t *at = to + d / 2 * pair;
        at[0] = (int16_t)q[0], at[one] = (int16_t)q[1], at[pair] = (int16_t)q[2], at[pair + one] = (int16_t)q[3];
      }
    }
  }
}
