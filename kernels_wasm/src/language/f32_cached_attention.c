// Attention over a cache of floats: each row sees the cache's rows up to its own position.
//
//   q      [rows, heads, width]
//   k      [groups, capacity/SIDE, width, SIDE]      v  [groups, capacity, width]: as f32_cache_rows lays them out
//   place  position of the first row, and how many rows count
//   y      [rows, heads, width] written; with several parts [rows, heads, parts, step], step = HEAD + width, for
//          f32_join_parts; else step = width
//
// Rows that do not count become 0, all of them where the cache does not hold their positions; parts are left alone.
// Needs: width <= ATTENTION_CACHED_WIDTH, width % 4 == 0, capacity % SIDE == 0, several parts of one row only.
// Units: groups * ceil(rows * heads/groups / CACHED_ROWS) * parts.
#include "cached_attention.h"

SMALL_PART void logits_of(int32_t rows, const float *const *q, const float *k, int32_t width, float scale,
                          Weights weights, int32_t to) {
  v4f sums[ROWS][2];
  TILE for (int32_t i = 0; i < rows; i++) sums[i][0] = sums[i][1] = v4f_splat(0.0f);
  NO_UNROLL for (int32_t d = 0; d < width; d++, k += SIDE) {
    const v4f left = v4f_load(k), right = v4f_load(k + 4);
    TILE for (int32_t i = 0; i < rows; i++) {
      const v4f s = v4f_load_splat(q[i] + d);
      sums[i][0] = v4f_madd(s, left, sums[i][0]);
      sums[i][1] = v4f_madd(s, right, sums[i][1]);
    }
  }
  TILE for (int32_t i = 0; i < rows; i++) {
    v4f_store(weights[i] + to, sums[i][0] * scale);
    v4f_store(weights[i] + to + 4, sums[i][1] * scale);
  }
}

// sums[i][d .. d + 4*vectors) = sums[i][..] * shrink[i] + weights[i][0 .. count) * v
SMALL_PART void add_values(int32_t rows, int32_t vectors, const Weights weights, const float *shrink, const float *v,
                           int32_t count, int32_t width, Sums sums, int32_t d) {
  v4f part[ROWS][8];
  TILE for (int32_t i = 0; i < rows; i++) {
    TILE for (int32_t l = 0; l < vectors; l++) part[i][l] = v4f_load(sums[i] + d + 4 * l) * shrink[i];
  }
  NO_UNROLL for (int32_t j = 0; j < count; j++, v += width) {
    TILE for (int32_t l = 0; l < vectors; l++) {
      const v4f value = v4f_load(v + 4 * l);
      TILE for (int32_t i = 0; i < rows; i++) {
        part[i][l] = v4f_madd(v4f_load_splat(weights[i] + j), value, part[i][l]);
      }
    }
  }
  TILE for (int32_t i = 0; i < rows; i++) {
    TILE for (int32_t l = 0; l < vectors; l++) v4f_store(sums[i] + d + 4 * l, part[i][l]);
  }
}

INLINE void add_block(int32_t rows, const Weights weights, const float *shrink, const float *v, int32_t count,
                      int32_t width, Sums sums) {
  const int32_t vectors = !SIMD ? 1 : rows < 4 ? 4 : 2;  // of sums that stay in registers
  int32_t d = 0;
  for (; d + 4 * vectors <= width; d += 4 * vectors) {
    add_values(rows, vectors, weights, shrink, v + d, count, width, sums, d);
  }
  for (; d < width; d += 4) add_values(rows, 1, weights, shrink, v + d, count, width, sums, d);
}

SMALL void f32_cached_attention(const float *restrict q, const float *restrict k, const float *restrict v,
                                const int32_t *place, float *restrict y, int32_t rows, int32_t heads, int32_t groups,
                                int32_t width, int32_t capacity, int32_t parts, int32_t step, float scale,
                                int32_t begin, int32_t end) {
  const int32_t blocks = (rows * (heads / groups) + ROWS - 1) / ROWS;
  const int32_t some = rows_that_count(place, y, rows, heads * width, capacity, parts);
  Weights weights;
  Gathered all;
  for (int32_t number = begin; number < end; number++) {
    const Unit unit = unit_of(number, place[0], some, blocks, heads, groups, parts);
    if (unit.count < 1) continue;
    const float *keys = k + unit.group * capacity * width, *values = v + unit.group * capacity * width, *from[ROWS];
    for (int32_t i = 0; i < ROWS; i++) from[i] = q + unit.at[i] * width;
    begin_rows(&all, width);
    for (int32_t key = unit.begin; key < unit.end; key += KEYS) {
      const int32_t count = unit.end - key < KEYS ? unit.end - key : KEYS, whole = (count + SIDE - 1) / SIDE * SIDE;
      float shrink[ROWS];
      for (int32_t j = 0; j < count; j += SIDE) {
#define LOGITS(rows) logits_of(rows, from, keys + (key + j) * width, width, scale * LOG2_E, weights, j)
        FOR_ROWS(unit.count, LOGITS);
      }
      for (int32_t i = 0; i < unit.count; i++) {
        shrink[i] = weigh(weights[i], whole, unit.seen[i] - key, 0, 0, &all.top[i], &all.total[i], 0);
      }
#define VALUES(rows) add_block(rows, weights, shrink, values + key * width, count, width, all.sums)
      FOR_ROWS(unit.count, VALUES);
    }
    end_rows(&unit, &all, y, width, parts, step);
  }
}
