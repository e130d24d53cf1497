// Attention over a cache of whole numbers of 13 bits: each row sees the cache's rows up to its own position. Queries,
// and in each block of keys the weights times the values' scales, are rounded too; sums of products are exact.
//
//   k, v   [groups, capacity/SIDE] blocks as i16_cache_rows lays them out
//
// All else as in f32_cached_attention.
// Needs: numbers of the cache from -ATTENTION_CACHED_MOST to it, and what f32_cached_attention needs.
// Units: groups * ceil(rows * heads/groups / CACHED_ROWS) * parts.
#include "cached_attention.h"

#define BLOCK(width) (SIDE * (2 + (width)))  // of a cache, in 16 bits
#define MOST_WEIGHT 8191
_Static_assert(1ll * ATTENTION_CACHED_MOST * ATTENTION_CACHED_MOST * ATTENTION_CACHED_WIDTH <= INT32_MAX, "32-bit sums");
_Static_assert(1ll * ATTENTION_CACHED_MOST * MOST_WEIGHT * KEYS <= INT32_MAX, "32-bit sums");

typedef int16_t Pairs[ROWS][2];  // two numbers of each row that are multiplied together

INLINE v8s pair_at(const int16_t *p) { return (v8s)v4f_load_splat((const float *)p); }

// Row `row` of pairs = x / top * bound, whole numbers; what they must be multiplied by to be x.
SMALL_PART float round_to(const float *x, Pairs *pairs, int32_t row, int32_t count, float top, float bound) {
  const float inverse = top > 0.0f ? bound / top : 0.0f;
  for (int32_t i = 0; i < count; i += 4) {
    const v4i q = v4f_whole_bits(v4f_madd(v4f_load(x + i), v4f_splat(inverse), v4f_splat(WHOLE)));
    const v4i two = (v4i)v8s_narrow(q, q);
    v4i_store_lane(pairs[i / 2][row], two, 0);
    v4i_store_lane(pairs[i / 2 + 1][row], two, 1);
  }
  return top * (1.0f / bound);
}

INLINE float largest_of(const float *x, int32_t count) {
  v4f most = v4f_splat(0.0f);
  for (int32_t i = 0; i < count; i += 4) most = v4f_max(most, v4f_abs(v4f_load(x + i)));
  return FOLD(v4f_max, most)[0];
}

SMALL_PART void logits_of(int32_t rows, const Pairs *q, const int16_t *k, int32_t width, const float *scale,
                          Weights weights, int32_t to) {
  v4i sums[ROWS][2];
  const v4f scales[2] = {v4f_load(k), v4f_load(k + 8)};
  k += 2 * SIDE;
  TILE for (int32_t i = 0; i < rows; i++) sums[i][0] = sums[i][1] = v4i_splat(0);
  NO_UNROLL for (int32_t d = 0; d < width; d += 2, k += 2 * SIDE, q++) {
    const v8s left = v8s_load(k), right = v8s_load(k + SIDE);
    TILE for (int32_t i = 0; i < rows; i++) {
      const v8s s = pair_at((*q)[i]);
      sums[i][0] += v4i_dot_i16(left, s);
      sums[i][1] += v4i_dot_i16(right, s);
      PIN(sums[i][0]);
      PIN(sums[i][1]);
    }
  }
  TILE for (int32_t i = 0; i < rows; i++) {
    v4f_store(weights[i] + to, v4f_from_i32(sums[i][0]) * (scales[0] * scale[i]));
    v4f_store(weights[i] + to + 4, v4f_from_i32(sums[i][1]) * (scales[1] * scale[i]));
  }
}

// sums[i][d .. d + 8) = sums[i][..] * shrink[i] + weights[i] * v * scales[i]
SMALL_PART void add_values(int32_t rows, const Pairs *weights, const float *shrink, const float *scales,
                           const int16_t *v, int32_t count, int32_t width, Sums sums, int32_t d) {
  v4i part[ROWS][2];
  TILE for (int32_t i = 0; i < rows; i++) part[i][0] = part[i][1] = v4i_splat(0);
  v += 2 * SIDE + 2 * d;
  for (int32_t j = 0; j < count; j += SIDE, v += 2 * SIDE) {
    NO_UNROLL for (int32_t l = 0; l < SIDE; l += 2, v += 2 * width, weights++) {
      const v8s left = v8s_load(v), right = v8s_load(v + 8);
      TILE for (int32_t i = 0; i < rows; i++) {
        const v8s s = pair_at((*weights)[i]);
        part[i][0] += v4i_dot_i16(left, s);
        part[i][1] += v4i_dot_i16(right, s);
        PIN(part[i][0]);
        PIN(part[i][1]);
      }
    }
  }
  TILE for (int32_t i = 0; i < rows; i++) {
    TILE for (int32_t l = 0; l < 2; l++) {
      float *to = sums[i] + d + 4 * l;
      v4f_store(to, v4f_madd(v4f_from_i32(part[i][l]), v4f_splat(scales[i]), v4f_load(to) * shrink[i]));
    }
  }
}

INLINE void add_block(int32_t rows, const Pairs *weights, const float *shrink, const float *scales,
                      const int16_t *v, int32_t count, int32_t width, Sums sums) {
  for (int32_t d = 0; d < width; d += 8) add_values(rows, weights, shrink, scales, v, count, width, sums, d);
}

SMALL void i16_cached_attention(const float *restrict q, const int16_t *restrict k, const int16_t *restrict v,
                               const int32_t *place, float *restrict y, int32_t rows, int32_t heads, int32_t groups,
                               int32_t width, int32_t capacity, int32_t parts, int32_t step, float scale,
                               int32_t begin, int32_t end) {
  const int32_t blocks = (rows * (heads / groups) + ROWS - 1) / ROWS, group_size = capacity / SIDE * BLOCK(width);
  const int32_t some = rows_that_count(place, y, rows, heads * width, capacity, parts);
  Weights weights;
  Pairs from[ATTENTION_CACHED_WIDTH / 2], rounded[KEYS / 2];
  Gathered all;
  for (int32_t i = 0; i < KEYS / 2 * ROWS * 2; i++) rounded[0][0][i] = 0;
  for (int32_t number = begin; number < end; number++) {
    const Unit unit = unit_of(number, place[0], some, blocks, heads, groups, parts);
    if (unit.count < 1) continue;
    float scales[ROWS], shrink[ROWS], factors[ROWS];
    for (int32_t i = 0; i < ROWS; i++) {
      const float *row = q + unit.at[i] * width;
      scales[i] = scale * LOG2_E * round_to(row, from, i, width, largest_of(row, width), ATTENTION_CACHED_MOST);
    }
    begin_rows(&all, width);
    for (int32_t key = unit.begin; key < unit.end; key += KEYS) {
      const int32_t count = unit.end - key < KEYS ? unit.end - key : KEYS, whole = (count + SIDE - 1) / SIDE * SIDE;
      const int32_t at = unit.group * group_size + key / SIDE * BLOCK(width);
      for (int32_t j = 0; j < count; j += SIDE) {
        const int16_t *block = k + at + j / SIDE * BLOCK(width);
        touch(v + at + j / SIDE * BLOCK(width), 2 * BLOCK(width));
#define LOGITS(rows) logits_of(rows, from, block, width, scales, weights, j)
        FOR_ROWS(unit.count, LOGITS);
      }
      for (int32_t i = 0; i < unit.count; i++) {
        float largest;
        shrink[i] = weigh(weights[i], whole, unit.seen[i] - key, (const float *)(v + at), BLOCK(width) / 2, &all.top[i],
                          &all.total[i], &largest);
        factors[i] = round_to(weights[i], rounded, i, whole, largest, MOST_WEIGHT);
      }
#define VALUES(rows) add_block(rows, rounded, shrink, factors, v + at, count, width, all.sums)
      FOR_ROWS(unit.count, VALUES);
    }
    end_rows(&unit, &all, y, width, parts, step);
  }
}
