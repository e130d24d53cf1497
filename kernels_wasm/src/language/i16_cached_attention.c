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
_Static_assert(1ll * ATTENTION_CACHED_MOST * ATTENTION_CACHED_MOST * ATTENTION_MAX_WIDTH <= INT32_MAX, "32-bit sums");
_Static_assert(1ll * ATTENTION_CACHED_MOST * MOST_WEIGHT * KEYS <= INT32_MAX, "32-bit sums");

typedef int16_t Rounded[ROWS][ATTENTION_MAX_WIDTH];
typedef int16_t RoundedWeights[ROWS][KEYS];

INLINE v8s pair_at(const int16_t *p) { return (v8s)v4f_load_splat((const float *)p); }

// y = x / scale, whole numbers up to `bound`; the scale.
SMALL_PART float round_to(const float *x, int16_t *y, int32_t count, float bound) {
  v4f most = v4f_splat(0.0f);
  for (int32_t i = 0; i < count; i += 4) most = v4f_max(most, v4f_abs(v4f_load(x + i)));
  const float top = FOLD(v4f_max, most)[0], inverse = top > 0.0f ? bound / top : 0.0f;
  for (int32_t i = 0; i < count; i += 4) {
    const v4i q = v4i_from_f32(v4f_round_even(v4f_load(x + i) * inverse));
    const v8s halves = v8s_narrow(q, q);
    v4s_store(y + i, __builtin_shufflevector(halves, halves, 0, 1, 2, 3));
  }
  return top / bound;
}

SMALL_PART void logits_of(int32_t rows, const Rounded q, const int16_t *k, int32_t width, Weights weights, int32_t to) {
  v4i sums[ROWS][2];
  const v4f scales[2] = {v4f_load(k), v4f_load(k + 8)};
  k += 2 * SIDE;
  TILE for (int32_t i = 0; i < rows; i++) sums[i][0] = sums[i][1] = v4i_splat(0);
  NO_UNROLL for (int32_t d = 0; d < width; d += 2, k += 2 * SIDE) {
    const v8s left = v8s_load(k), right = v8s_load(k + SIDE);
    TILE for (int32_t i = 0; i < rows; i++) {
      const v8s s = pair_at(q[i] + d);
      sums[i][0] += v4i_dot_i16(left, s);
      sums[i][1] += v4i_dot_i16(right, s);
      PIN(sums[i][0]);
      PIN(sums[i][1]);
    }
  }
  TILE for (int32_t i = 0; i < rows; i++) {
    v4f_store(weights[i] + to, v4f_from_i32(sums[i][0]) * scales[0]);
    v4f_store(weights[i] + to + 4, v4f_from_i32(sums[i][1]) * scales[1]);
  }
}

// Weights of keys times their values' scales, rounded; the scale of all.
SMALL_PART float scaled(float *weights, const int16_t *v, int32_t count, int32_t width, int16_t *rounded) {
  for (int32_t j = 0; j < count; j += 4) {
    const v4f scales = v4f_load(v + j / SIDE * BLOCK(width) + j % SIDE * 2);
    v4f_store(weights + j, v4f_first_lanes(v4f_load(weights + j) * scales, count - j, v4f_splat(0.0f)));
  }
  return round_to(weights, rounded, (count + SIDE - 1) / SIDE * SIDE, MOST_WEIGHT);
}

// sums[i][d .. d + 8) = sums[i][..] * shrink[i] + weights[i] * v * scales[i]
SMALL_PART void add_values(int32_t rows, const RoundedWeights weights, const float *shrink, const float *scales,
                           const int16_t *v, int32_t count, int32_t width, Sums sums, int32_t d) {
  v4i part[ROWS][2];
  TILE for (int32_t i = 0; i < rows; i++) part[i][0] = part[i][1] = v4i_splat(0);
  v += 2 * SIDE + 2 * d;
  for (int32_t j = 0; j < count; j += SIDE, v += 2 * SIDE) {
    NO_UNROLL for (int32_t l = j; l < j + SIDE; l += 2, v += 2 * width) {
      const v8s left = v8s_load(v), right = v8s_load(v + 8);
      TILE for (int32_t i = 0; i < rows; i++) {
        const v8s s = pair_at(weights[i] + l);
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

INLINE void add_block(int32_t rows, const RoundedWeights weights, const float *shrink, const float *scales,
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
  Rounded from;
  RoundedWeights rounded;
  Gathered all;
  for (int32_t i = 0; i < ROWS * KEYS; i++) (&rounded[0][0])[i] = 0;
  for (int32_t number = begin; number < end; number++) {
    const Unit unit = unit_of(number, place[0], some, blocks, heads, groups, parts);
    if (unit.count < 1) continue;
    float scales[ROWS], shrink[ROWS], factors[ROWS];
    for (int32_t i = 0; i < ROWS; i++) {
      scales[i] = scale * round_to(q + unit.at[i] * width, from[i], width, ATTENTION_CACHED_MOST);
    }
    begin_rows(&all);
    for (int32_t key = unit.begin; key < unit.end; key += KEYS) {
      const int32_t count = unit.end - key < KEYS ? unit.end - key : KEYS, whole = (count + SIDE - 1) / SIDE * SIDE;
      const int32_t at = unit.group * group_size + key / SIDE * BLOCK(width);
      for (int32_t j = 0; j < count; j += SIDE) {
        const int16_t *block = k + at + j / SIDE * BLOCK(width);
#define LOGITS(rows) logits_of(rows, (const int16_t (*)[ATTENTION_MAX_WIDTH])from, block, width, weights, j)
        FOR_ROWS(unit.count, LOGITS);
      }
      for (int32_t i = 0; i < unit.count; i++) {
        shrink[i] = weigh(weights[i], whole, unit.seen[i] - key, scales[i], &all.top[i], &all.total[i]);
        factors[i] = scaled(weights[i], v + at, count, width, rounded[i]);
      }
#define VALUES(rows) \
  add_block(rows, (const int16_t (*)[KEYS])rounded, shrink, factors, v + at, count, width, all.sums)
      FOR_ROWS(unit.count, VALUES);
    }
    end_rows(&unit, &all, y, width, parts, step);
  }
}
