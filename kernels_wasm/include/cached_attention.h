// Attention over a cache of keys and values: what kernels for floats and for bytes share. Heads that share keys are
// computed side by side, and sums shrink when a block of keys brings a larger logit, as in f32_attention.
#pragma once

#include "dots.h"
#include "exponential.h"
#include "lanes.h"

#define ROWS ATTENTION_CACHED_ROWS
#define SIDE ATTENTION_CACHED_SIDE
#define KEYS 64
#define SPARE 8  // elements of a row of sums that may be written and do not count
#define HEAD ATTENTION_CACHED_HEAD  // floats of a part before its sums: the largest logit, the sum of weights
#if SIMD
#define TILE UNROLL
#define FOR_ROWS(count, CALL)              \
  do {                                     \
    if ((count) == 1) CALL(1);             \
    else if ((count) == 2) CALL(2);        \
    else if ((count) == 3) CALL(3);        \
    else CALL(4);                          \
  } while (0)
#else
#define TILE NO_UNROLL
#define FOR_ROWS(count, CALL) CALL(ROWS)
#endif
#define LOWEST -3.402823466e38f
_Static_assert(ROWS == 4, "FOR_ROWS counts to four");

typedef float Weights[ROWS][KEYS];
typedef float Sums[ROWS][ATTENTION_CACHED_WIDTH + SPARE];

// A unit: rows that share keys, and the keys that it looks at.
typedef struct {
  int32_t count, group, begin, end, part;  // rows; of the cache; keys; which of the parts
  int32_t at[ROWS], seen[ROWS];            // index of row and head; keys that it sees
} Unit;

// What rows have gathered so far.
typedef struct {
  float top[ROWS], total[ROWS];
  Sums sums;
} Gathered;

INLINE Unit unit_of(int32_t number, int32_t position, int32_t some, int32_t blocks, int32_t heads, int32_t groups,
                    int32_t parts) {
  const int32_t share = heads / groups, first = number / parts % blocks * ROWS, left = some * share - first;
  Unit unit = {.count = left < ROWS ? left : ROWS, .group = number / parts / blocks, .part = number % parts};
  for (int32_t i = 0; i < ROWS; i++) {
    const int32_t index = first + (i < unit.count ? i : 0);
    unit.at[i] = index / share * heads + unit.group * share + index % share;
    unit.seen[i] = position + index / share + 1;
    if (unit.seen[i] > unit.end) unit.end = unit.seen[i];
  }
  if (parts > 1) {  // each has whole blocks of keys, or none
    const int32_t whole = (unit.end + KEYS - 1) / KEYS, end = (unit.part + 1) * whole / parts * KEYS;
    unit.begin = unit.part * whole / parts * KEYS;
    if (end < unit.end) unit.end = end;
  }
  return unit;
}

#if SIMD
// 2^x for x <= 0, 2^-100 below -100; error 2e-7. Its constants stay in registers, see kernels_wasm/README.md.
typedef struct {
  v4f lowest, whole, one, p[5];
} Powers;

INLINE Powers find_powers(void) {
  Powers c = {
      v4f_splat(-100.0f), v4f_splat(WHOLE + 127.0f), v4f_splat(1.0f),
      {v4f_splat(1.3264724e-3f), v4f_splat(9.671513e-3f), v4f_splat(5.5507336e-2f), v4f_splat(2.4022242e-1f),
       v4f_splat(6.9314698e-1f)},
  };
  PIN(c.lowest);
  PIN(c.whole);
  PIN(c.one);
  UNROLL for (int32_t i = 0; i < 5; i++) PIN(c.p[i]);
  return c;
}

INLINE v4f power(const Powers *c, v4f x) {
  const v4f near = v4f_max(x, c->lowest), sum = near + c->whole, r = near - (sum - c->whole);
  v4f p = c->p[0];
  UNROLL for (int32_t i = 1; i < 5; i++) p = v4f_madd(p, r, c->p[i]);
  return v4f_madd(p, r, c->one) * (v4f)((v4i)sum << 23);  // the last bits of `sum` are an exponent with its bias
}
#define POWERS const Powers powers = find_powers()
#define POWER(x) power(&powers, x)
#else
#define POWERS
#define POWER(x) exponential((x) * LN2)
#endif

INLINE void hide(float *weights, int32_t block, int32_t count, float value) {
  for (int32_t j = count < 0 ? 0 : count & -4; j < block; j += 4) {
    v4f_store(weights + j, v4f_first_lanes(v4f_load(weights + j), count - j, v4f_splat(value)));
  }
}

// Logits, of base 2, of `block` keys become weights; the first `count` keys are seen. Where there are scales of values,
// SIDE of them every `step` floats, weights are multiplied by them, but for their sum, and `largest` becomes the largest
// one. What was summed before shrinks by what this gives.
SMALL_PART float weigh(float *weights, int32_t block, int32_t count, const float *scales, int32_t step, float *top,
                       float *total, float *largest) {
  POWERS;
  hide(weights, block, count, -INFINITE);
  v4f most = v4f_splat(*top), sum = v4f_splat(0.0f), above = v4f_splat(0.0f);
  for (int32_t j = 0; j < block; j += 4) most = v4f_max(most, v4f_load(weights + j));
  most = FOLD(v4f_max, most);
  for (int32_t j = 0; j < block; j += SIDE) {
    for (int32_t l = 0; l < SIDE; l += 4) {
      v4f weight = POWER(v4f_load(weights + j + l) - most);
      sum += weight;
      if (scales) above = v4f_max(above, weight *= v4f_load(scales + l));
      v4f_store(weights + j + l, weight);
    }
    if (scales) scales += step;
  }
  if (scales) {
    hide(weights, block, count, 0.0f);
    *largest = FOLD(v4f_max, above)[0];
  }
  const v4f shrink = POWER(v4f_splat(*top) - most);
  *total = *total * shrink[0] + FOLD(plus, sum)[0];
  *top = most[0];
  return shrink[0];
}

INLINE void begin_rows(Gathered *all, int32_t width) {
  for (int32_t i = 0; i < ROWS; i++) {
    all->top[i] = LOWEST;
    all->total[i] = 0.0f;
    for (int32_t d = 0; d < width + SPARE; d += 4) v4f_store(all->sums[i] + d, v4f_splat(0.0f));
  }
}

// Rows of y, or with several parts what each of them has found, for f32_join_parts.
INLINE void end_rows(const Unit *unit, Gathered *all, float *y, int32_t width, int32_t parts, int32_t step) {
  for (int32_t i = 0; i < unit->count; i++) {
    float *to = y + (unit->at[i] * parts + unit->part) * step;
    v4f factor = v4f_splat(1.0f);
    if (parts > 1) {
      v4f_store(to, (v4f){all->top[i] * LN2, all->total[i], 0.0f, 0.0f});
      to += HEAD;
    } else {
      factor = 1.0f / v4f_splat(all->total[i]);
    }
    for (int32_t d = 0; d < width; d += 4) v4f_store(to + d, v4f_load(all->sums[i] + d) * factor);
  }
}

// How many rows count; those of y that do not become 0, unless they are joined of parts.
INLINE int32_t rows_that_count(const int32_t *place, float *y, int32_t rows, int32_t row, int32_t capacity,
                               int32_t parts) {
  int32_t some = place[1] < rows ? place[1] : rows;
  if (place[0] < 0 || some < 1 || some > capacity - place[0]) some = 0;
  for (int32_t i = some * row; i < rows * row && parts == 1; i++) y[i] = 0.0f;
  return some;
}
