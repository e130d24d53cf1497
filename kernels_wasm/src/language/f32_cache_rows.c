// Rows of heads, turned by their positions, into another layout: queries as they are, keys and values into a cache.
//
//   x       [rows, heads, width]  read
//   place   position of the first row, and how many rows count
//   speeds  [turned/2] radians a position, or 0: nothing is turned
//   y       element d of head h of row i at h*head_step + p / lanes * block_step + p % lanes + d*d_step, where p is i,
//           or with `cached` the row's position
//
// A pair that turns together is 2j and 2j+1 if `adjacent`, else j and j + turned/2.
// Needs: with `cached` a position and count whose rows the cache holds, else nothing is written. Units: rows.
#include "small.h"

// Sine of quarters * pi/2 + r, |r| <= pi/4, to 1e-9.
SMALL_PART float sine(double r, int32_t quarters) {
  const double z = r * r;
  const double s = r * (1 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880)))));
  const double c = 1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 - z * (1.0 / 3628800)))));
  const double y = quarters & 1 ? c : s;
  return (float)(quarters & 2 ? -y : y);
}

SMALL void f32_cache_rows(const float *restrict x, const int32_t *place, const float *speeds, float *restrict y,
                    int32_t rows, int32_t heads, int32_t width, int32_t turned, int32_t adjacent, int32_t cached,
                    int32_t capacity, int32_t head_step, int32_t lanes, int32_t block_step, int32_t d_step,
                    int32_t begin, int32_t end) {
  (void)rows;
  const int32_t first = place[0];
  if (place[1] < end) end = place[1];
  if (first < 0 || (cached && end > capacity - first)) return;
  for (int32_t i = begin; i < end; i++) {
    const int32_t p = cached ? first + i : i;
    const float *from = x + i * heads * width;
    float *to = y + p / lanes * block_step + p % lanes;
    const int32_t pairs = speeds ? turned / 2 : 0;
    for (int32_t j = 0; j < pairs; j++) {
      const double angle = (double)((float)(first + i) * speeds[j]), turns = angle * 0.63661977236758134308;
      const int32_t quarters = turns < 0x1p30 && turns > -0x1p30 ? (int32_t)__builtin_rint(turns) : 0;
      const double rest = angle - quarters * 1.57079632679489661923;
      const float c = sine(rest, quarters + 1), s = sine(rest, quarters);
      const int32_t a = adjacent ? 2 * j : j, b = adjacent ? a + 1 : j + pairs;
      for (int32_t h = 0; h < heads; h++) {
        const float left = from[h * width + a], right = from[h * width + b];
        to[h * head_step + a * d_step] = left * c - right * s;
        to[h * head_step + b * d_step] = left * s + right * c;
      }
    }
    for (int32_t h = 0; h < heads; h++) {
      for (int32_t d = 2 * pairs; d < width; d++) to[h * head_step + d * d_step] = from[h * width + d];
    }
  }
}
