// Attention over a cache: each row sees the cache's rows up to its own position. Heads that share keys are computed side
// by side, and sums shrink when a block of keys brings a larger logit, as in f32_attention.
//
//   q, y   [rows, heads, width]
//   k      [groups, capacity/8, width, 8]      v  [groups, capacity, width]: as f32_cache_rows lays them out
//   place  position of the first row, and how many rows count
//
// Rows that do not count become 0, all of them where the cache does not hold their positions.
// Needs: width <= ATTENTION_MAX_WIDTH, width % 4 == 0, capacity % 8 == 0. Units: groups * ceil(rows * heads/groups / CACHED_ROWS).
#include "lanes.h"
#include "exponential.h"

#define ROWS ATTENTION_CACHED_ROWS
#define KEYS 64
#if SIMD
#define TILE UNROLL
#else
#define TILE NO_UNROLL
#endif
#define LOWEST -3.402823466e38f

SMALL_PART void logits_of(const float *const *q, const float *k, int32_t width, float weights[ROWS][KEYS], int32_t to) {
  v4f sums[ROWS][2];
  TILE for (int32_t i = 0; i < ROWS; i++) sums[i][0] = sums[i][1] = v4f_splat(0.0f);
  NO_UNROLL for (int32_t d = 0; d < width; d++, k += 8) {
    const v4f left = v4f_load(k), right = v4f_load(k + 4);
    TILE for (int32_t i = 0; i < ROWS; i++) {
      const v4f s = v4f_load_splat(q[i] + d);
      sums[i][0] = v4f_madd(s, left, sums[i][0]);
      sums[i][1] = v4f_madd(s, right, sums[i][1]);
    }
  }
  TILE for (int32_t i = 0; i < ROWS; i++) {
    v4f_store(weights[i] + to, sums[i][0]);
    v4f_store(weights[i] + to + 4, sums[i][1]);
  }
}

// sums[i][d .. d + 4) += weights[i][0 .. count) * v
SMALL_PART void add_values(float weights[ROWS][KEYS], const float *v, int32_t count, int32_t width,
                       float sums[ROWS][ATTENTION_MAX_WIDTH], int32_t d) {
  v4f part[ROWS];
  TILE for (int32_t i = 0; i < ROWS; i++) part[i] = v4f_load(sums[i] + d);
  NO_UNROLL for (int32_t j = 0; j < count; j++, v += width) {
    const v4f value = v4f_load(v);
    TILE for (int32_t i = 0; i < ROWS; i++) part[i] = v4f_madd(v4f_load_splat(weights[i] + j), value, part[i]);
  }
  TILE for (int32_t i = 0; i < ROWS; i++) v4f_store(sums[i] + d, part[i]);
}

// Weights of the block's keys, of which `count` are seen; what was summed before shrinks.
SMALL_PART void weigh(float *weights, int32_t block, int32_t count, float scale, float *top, float *total, float *sums,
                  int32_t width) {
  v4f most = v4f_splat(*top), sum = v4f_splat(0.0f);
  for (int32_t j = 0; j < block; j += 4) {
    const v4f logit = v4f_first_lanes(v4f_load(weights + j) * scale, count - j, v4f_splat(-INFINITE));
    v4f_store(weights + j, logit);
    most = v4f_max(most, logit);
  }
  most = FOLD(v4f_max, most);
  for (int32_t j = 0; j < block; j += 4) {
    const v4f weight = exponential(v4f_load(weights + j) - most);
    v4f_store(weights + j, weight);
    sum += weight;
  }
  const v4f shrink = exponential(v4f_splat(*top) - most);
  *total = *total * shrink[0] + FOLD(plus, sum)[0];
  for (int32_t d = 0; d < width; d += 4) v4f_store(sums + d, v4f_load(sums + d) * shrink);
  *top = most[0];
}

SMALL void f32_cached_attention(const float *restrict q, const float *restrict k, const float *restrict v,
                          const int32_t *place, float *restrict y, int32_t rows, int32_t heads, int32_t groups,
                          int32_t width, int32_t capacity, float scale, int32_t begin, int32_t end) {
  const int32_t share = heads / groups, blocks = (rows * share + ROWS - 1) / ROWS, position = place[0];
  int32_t some = place[1] < rows ? place[1] : rows;
  if (position < 0 || some < 1 || some > capacity - position) some = 0;
  for (int32_t i = some * heads * width; i < rows * heads * width; i++) y[i] = 0.0f;
  float weights[ROWS][KEYS], sums[ROWS][ATTENTION_MAX_WIDTH], top[ROWS], total[ROWS];
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t group = unit / blocks, first = unit % blocks * ROWS;
    if (first >= some * share) continue;
    const float *from[ROWS], *keys = k + group * capacity * width, *values = v + group * capacity * width;
    int32_t seen[ROWS], at[ROWS], last = 0;
    for (int32_t i = 0; i < ROWS; i++) {
      const int32_t index = first + i < some * share ? first + i : some * share - 1;
      at[i] = (index / share * heads + group * share + index % share) * width;
      seen[i] = position + index / share + 1;
      if (seen[i] > last) last = seen[i];
      from[i] = q + at[i];
      top[i] = LOWEST;
      total[i] = 0.0f;
      for (int32_t d = 0; d < width; d += 4) v4f_store(sums[i] + d, v4f_splat(0.0f));
    }
    for (int32_t key = 0; key < last; key += KEYS) {
      const int32_t count = last - key < KEYS ? last - key : KEYS, whole = (count + 7) / 8 * 8;
      for (int32_t j = 0; j < count; j += 8) logits_of(from, keys + (key + j) * width, width, weights, j);
      for (int32_t i = 0; i < ROWS; i++) {
        weigh(weights[i], whole, seen[i] - key, scale, &top[i], &total[i], sums[i], width);
      }
      for (int32_t d = 0; d < width; d += 4) add_values(weights, values + key * width + d, count, width, sums, d);
    }
    for (int32_t i = 0; i < ROWS && first + i < some * share; i++) {
      const v4f factor = 1.0f / v4f_splat(total[i]);
      for (int32_t d = 0; d < width; d += 4) v4f_store(y + at[i] + d, v4f_load(sums[i] + d) * factor);
    }
  }
}
