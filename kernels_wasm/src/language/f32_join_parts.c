// One row of attention from what parts of its keys gave.
//
//   x  [heads, parts, HEAD + width]  what f32_cached_attention or i16_cached_attention wrote of each part
//   y  [heads, width]  written; 0 where the row does not count
//
//   place  position of the row, and whether it counts: at least 1
//
// Needs: width % 4 == 0. Units: heads.
#include "exponential.h"
#include "lanes.h"

#define HEAD ATTENTION_CACHED_HEAD

SMALL void f32_join_parts(const float *restrict x, const int32_t *place, float *restrict y, int32_t width,
                          int32_t capacity, int32_t parts, int32_t begin, int32_t end) {
  const int32_t counts = place[0] >= 0 && place[1] >= 1 && place[0] < capacity;
  for (int32_t head = begin; head < end; head++) {
    const float *from = x + head * parts * (HEAD + width);
    float *to = y + head * width, top = from[0], total = 0.0f;
    for (int32_t d = 0; d < width; d += 4) v4f_store(to + d, v4f_splat(0.0f));
    if (!counts) continue;
    for (int32_t part = 1; part < parts; part++) {
      const float found = from[part * (HEAD + width)];
      if (found > top) top = found;
    }
    for (int32_t part = 0; part < parts; part++, from += HEAD + width) {
      const v4f share = exponential(v4f_splat(from[0] - top));
      total += share[0] * from[1];
      for (int32_t d = 0; d < width; d += 4) {
        v4f_store(to + d, v4f_madd(share, v4f_load(from + HEAD + d), v4f_load(to + d)));
      }
    }
    const v4f factor = 1.0f / v4f_splat(total);
    for (int32_t d = 0; d < width; d += 4) v4f_store(to + d, v4f_load(to + d) * factor);
  }
}
