// Attention: y = softmax(q kT * scale + mask) v. Keys come in blocks, and what is summed so far shrinks when a block
// brings a larger logit, so that no row of logits is ever whole in memory. With a cap, which is not 0, a scaled logit x is
// cap * tanh(x / cap) before the mask is added.
//
//   q, y  [batches, heads, queries, d] and [.., e]: batch b, head h, row i from b * q_batch + h * q_head + i * q_row on
//   k, v  [batches, heads / share, keys, d] and [.., e]: likewise; `share` heads in a row read one group
//   mask  likewise [.., queries, keys], read up to 12 bytes past its end; 0 = none
//   columns  likewise [.., queries, spread], read as far; 0 = none. With them the mask is [.., queries, keys / spread],
//         and key i has mask[i / spread] + columns[i % spread].
//
// Queries of a group lie in lanes, eight side by side, so that keys and values are read where they lie, one float for
// eight queries: nothing of them is packed, and softmax needs no sums across lanes. With clear_nan a row whose weights
// are no numbers is 0. Keys that a mask hides from all rows of a unit (-inf) are not read.
// Needs: d, e <= ATTENTION_MAX_WIDTH; y overlaps nothing.
//
// Units: batches * heads / share * ceil(share * queries / rows), with 2 * ATTENTION_ROWS rows where d and e are at most
// ATTENTION_NARROW, ATTENTION_ROWS up to ATTENTION_MIDDLE, and ATTENTION_WIDE_ROWS above.
#include "lanes.h"
#include "math.h"

#define SIDE 8
#define MOST_ROWS (2 * ATTENTION_ROWS)
#define PANELS (MOST_ROWS / SIDE)
#define SPLATS(a) splat_lane(a, 0), splat_lane(a, 1), splat_lane(a, 2), splat_lane(a, 3)
#define TALL 6   // keys, or elements of values, of a register tile; four where no more than four are left
#define KEYS 60  // of a block: with the values of 64 elements they take 30 KB of the first cache
#define WIDE_KEYS 12  // the same where elements are more than ATTENTION_MIDDLE: 24 take 1.05 times as long, 60 1.2 times
#define LOWEST -3.402823466e38f
#if !SIMD
#undef UNROLL
#define UNROLL NO_UNROLL
#endif
_Static_assert(KEYS % TALL == 0 && KEYS % 4 == 0 && WIDE_KEYS <= KEYS, "rows of weights past a block");
#define LANES_OF(d, e) ((d) + (e) + TALL + KEYS)  // rows of eight floats that a panel has
#define MOST_LANES (PANELS * LANES_OF(ATTENTION_NARROW, ATTENTION_NARROW))
_Static_assert(MOST_LANES >= PANELS / 2 * LANES_OF(ATTENTION_MIDDLE, ATTENTION_MIDDLE), "half as many wider ones");
_Static_assert(MOST_LANES >= ATTENTION_WIDE_ROWS / SIDE * LANES_OF(ATTENTION_MAX_WIDTH, ATTENTION_MAX_WIDTH), "widest");

// 2^x of x = a * log2(e) for a <= 0; 0 below 2^-100, error 2e-7. The factor 2^27 in the polynomial makes the bits of
// the least exponent those of 0: products with weights that are next to nothing would be subnormal, and slow.
typedef struct {
  v4f log2_e, lowest, whole, p[6];
} Powers;

#define SCALED(x) v4f_splat((x) * 0x1p27f)
INLINE Powers find_powers(void) {
  Powers c = {
      v4f_splat(LOG2_E), v4f_splat(-100.0f), v4f_splat(WHOLE + 100.0f),
      {SCALED(1.3264724e-3f), SCALED(9.671513e-3f), SCALED(5.5507336e-2f), SCALED(2.4022242e-1f), SCALED(6.9314698e-1f),
       SCALED(1.0f)},
  };
  PIN(c.log2_e);
  PIN(c.lowest);
  PIN(c.whole);
  UNROLL for (int i = 0; i < 6; i++) PIN(c.p[i]);
  return c;
}

INLINE v4f power(const Powers *c, v4f x) {
  const v4f near = v4f_max(x * c->log2_e, c->lowest), sum = near + c->whole, r = near - (sum - c->whole);
  v4f p = c->p[0];
  UNROLL for (int i = 1; i < 6; i++) p = v4f_madd(p, r, c->p[i]);
  return p * (v4f)((v4i)sum << 23);
}

// Eight rows side by side: d of q, e + TALL of sums, KEYS of weights.
typedef struct {
  float (*q)[SIDE], (*sums)[SIDE], (*weights)[SIDE];
  float top[SIDE], total[SIDE];
  const float *masks[SIDE], *columns[SIDE];
  int32_t hidden;  // whether the block of keys counts for none of them
} Panel;

INLINE void transpose(v4f a[4]) {
  const v4f ab = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5), cd = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
  const v4f AB = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7), CD = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
  a[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  a[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  a[2] = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
  a[3] = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

INLINE void add(v4f sums[TALL][2], const int tall, const float *a[TALL], int32_t at, const float *b) {
  const v4f left = v4f_load(b), right = v4f_load(b + 4);
  UNROLL for (int i = 0; i < tall; i++) {
    PIN(a[i]);
    const v4f s = v4f_load_splat(a[i] + at);
    sums[i][0] = v4f_madd(s, left, sums[i][0]);
    PIN(sums[i][0]);
    sums[i][1] = v4f_madd(s, right, sums[i][1]);
    PIN(sums[i][1]);
  }
}

// Logits of some keys and eight queries, before the mask; rows past the last key repeat it.
INLINE void score(const int tall, const float *k, int32_t k_row, int32_t last, const float *q, int32_t d, float *to) {
  const float *a[TALL];
  v4f sums[TALL][2];
  UNROLL for (int i = 0; i < tall; i++) {
    a[i] = k + (i < last ? i : last) * k_row;
    sums[i][0] = sums[i][1] = v4f_splat(0.0f);
  }
#if GATHERS
  NO_UNROLL for (; d >= 2; d -= 2, q += 2 * SIDE) {
    PIN(q);
    const v4f b[2][2] = {{v4f_load(q), v4f_load(q + 4)}, {v4f_load(q + SIDE), v4f_load(q + SIDE + 4)}};
    UNROLL for (int i = 0; i < tall; i++) {
      PIN(a[i]);
      v4f_madd_two(sums[i], v4f_load_half(a[i]), b[0], b[1], 2);
      a[i] += 2;
    }
  }
#else
  NO_UNROLL for (; d >= 4; d -= 4, q += 4 * SIDE) {
    UNROLL for (int u = 0; u < 4; u++) {
      PIN(q);
      add(sums, tall, a, u, q + u * SIDE);
    }
    UNROLL for (int i = 0; i < tall; i++) a[i] += 4;
  }
#endif
  NO_UNROLL for (; d > 0; d--, q += SIDE) {
    add(sums, tall, a, 0, q);
    UNROLL for (int i = 0; i < tall; i++) a[i]++;
  }
  UNROLL for (int i = 0; i < tall; i++) {
    UNROLL for (int s = 0; s < 2; s++) v4f_store(to + i * SIDE + 4 * s, sums[i][s]);
  }
}

// Whether none of these keys counts for any of the eight rows: a weight is 0 where the mask is -inf, and where it is next
// to the lowest number beside a logit that is none of that kind.
INLINE int is_hidden(const Panel *p, int32_t at, int32_t count, int32_t rows) {
  v4i seen = v4i_splat(0), low = (v4f_load(p->top) < LOWEST / 4) | (v4f_load(p->top + 4) < LOWEST / 4);
  const v4f limit = v4i_any(low) ? v4f_splat(-INFINITE) : v4f_splat(LOWEST / 2);
  for (int32_t i = 0; i < rows; i++) {
    const float *mask = p->masks[i] + at;
    NO_UNROLL for (int32_t j = 0; j < count; j += 4) {
      seen |= ~(v4f_first_lanes(v4f_load(mask + j), count - j, limit) <= limit);
    }
  }
  return !v4i_any(seen);
}

// Logits of a block of keys become weights; those of all keys before shrink by what this leaves in `shrink`.
INLINE void weigh(Panel *p, int32_t count, v4f shrink[2]) {
  const Powers powers = find_powers();
  NO_UNROLL for (int32_t s = 0; s < 2; s++) {
    float *weights = p->weights[0] + 4 * s;
    v4f most = v4f_load(p->top + 4 * s), before = most, sum = v4f_splat(0.0f);
    NO_UNROLL for (int32_t j = 0; j < count; j++) most = v4f_max(most, v4f_load(weights + j * SIDE));
    NO_UNROLL for (int32_t j = 0; j < count; j++) {
      const v4f weight = power(&powers, v4f_load(weights + j * SIDE) - most);
      sum += weight;
      v4f_store(weights + j * SIDE, weight);
    }
    shrink[s] = power(&powers, before - most);
    v4f_store(p->total + 4 * s, v4f_madd(v4f_load(p->total + 4 * s), shrink[s], sum));
    v4f_store(p->top + 4 * s, most);
  }
}

// sums = sums * shrink + weights * some elements of the values of a block of keys
INLINE void gather(const int tall, const float *v, int32_t v_row, int32_t count, const float *weights,
                   const v4f shrink[2], float *to) {
  v4f sums[TALL][2];
  UNROLL for (int i = 0; i < tall; i++) {
    UNROLL for (int s = 0; s < 2; s++) sums[i][s] = v4f_load(to + i * SIDE + 4 * s) * shrink[s];
  }
  NO_UNROLL for (; count > 0; count--, weights += SIDE, v += v_row) {
    const v4f left = v4f_load(weights), right = v4f_load(weights + 4);
#if GATHERS
    const v4f values[2] = {v4f_load(v), tall > 4 ? v4f_load_half(v + 4) : v4f_load(v)};
    const v4f each[TALL] = {SPLATS(values[0]), splat_lane(values[1], 0), splat_lane(values[1], 1)};
#endif
    UNROLL for (int i = 0; i < tall; i++) {
#if GATHERS
      const v4f s = each[i];
#else
      PIN(v);
      const v4f s = v4f_load_splat(v + i);
#endif
      sums[i][0] = v4f_madd(s, left, sums[i][0]);
      PIN(sums[i][0]);
      sums[i][1] = v4f_madd(s, right, sums[i][1]);
      PIN(sums[i][1]);
    }
  }
  UNROLL for (int i = 0; i < tall; i++) {
    UNROLL for (int s = 0; s < 2; s++) v4f_store(to + i * SIDE + 4 * s, sums[i][s]);
  }
}

// Blocks of values and of keys: functions of their own have the registers for themselves.
static __attribute__((noinline)) void gather_block(Panel *p, const float *v, int32_t v_row, int32_t count, int32_t e,
                                                   const v4f shrink[2]) {
  int32_t j = 0;
  for (; e - j > 4; j += TALL) gather(TALL, v + j, v_row, count, p->weights[0], shrink, p->sums[j]);
  if (j < e) gather(4, v + j, v_row, count, p->weights[0], shrink, p->sums[j]);
}

static __attribute__((noinline)) void score_block(Panel *p, const float *k, int32_t k_row, int32_t count, int32_t d) {
  int32_t j = 0;
  for (; count - j > 4; j += TALL) score(TALL, k + j * k_row, k_row, count - 1 - j, p->q[0], d, p->weights[j]);
  if (j < count) score(4, k + j * k_row, k_row, count - 1 - j, p->q[0], d, p->weights[j]);
}

INLINE void add_mask(Panel *p, const float *const masks[SIDE], int32_t count) {
  for (int32_t j = 0; j < count; j += 4) {
    for (int s = 0; s < 2; s++) {
      v4f part[4];
      UNROLL for (int i = 0; i < 4; i++) part[i] = v4f_load(masks[4 * s + i] + j);
      transpose(part);
      UNROLL for (int i = 0; i < 4; i++) {
        float *to = p->weights[j + i] + 4 * s;
        v4f_store(to, v4f_load(to) + part[i]);
      }
    }
  }
}

INLINE void add_mask_of(Panel *p, int32_t at, int32_t count) {
  const float *masks[SIDE];
  for (int32_t i = 0; i < SIDE; i++) masks[i] = p->masks[i] + at;
  add_mask(p, masks, count);
}

// The masks of a block of keys, whose rows and columns have a part each.
static __attribute__((noinline)) void add_mask_of_parts(Panel *p, int32_t at, int32_t count, int32_t spread) {
  float sums[SIDE][KEYS + 4];
  const float *masks[SIDE];
  for (int32_t i = 0; i < SIDE; i++) {
    masks[i] = sums[i];
    const float *mask = p->masks[i] + at / spread, *columns = p->columns[i];
    for (int32_t j = 0, c = at % spread; j < count; mask++, c = 0) {
      const int32_t run = spread - c < count - j ? spread - c : count - j;
      const v4f part = v4f_load_splat(mask);
      for (int32_t u = 0; u < run; u += 4) v4f_store(sums[i] + j + u, part + v4f_load(columns + c + u));
      j += run;
    }
  }
  add_mask(p, masks, count);
}

static __attribute__((noinline)) void cap_block(Panel *p, int32_t count, float cap) {
  for (int32_t j = 0; j < count * SIDE; j += 4) {
    float *logits = p->weights[0] + j;
    v4f_store(logits, v4f_tanh(v4f_load(logits) / cap) * cap);
  }
}

INLINE void begin_panel(Panel *p, int32_t d, int32_t e, const float *const rows[SIDE], float scale) {
  for (int32_t j = 0; j < d; j += 4) {
    UNROLL for (int s = 0; s < 2; s++) {
      v4f part[4];
      UNROLL for (int i = 0; i < 4; i++) part[i] = v4f_load(rows[4 * s + i] + j) * scale;
      transpose(part);
      UNROLL for (int i = 0; i < 4; i++) v4f_store(p->q[j + i] + 4 * s, part[i]);
    }
  }
  for (int32_t j = 0; j < (e + TALL) * SIDE; j += 4) v4f_store(p->sums[0] + j, v4f_splat(0.0f));
  for (int32_t s = 0; s < SIDE; s += 4) {
    v4f_store(p->top + s, v4f_splat(LOWEST));
    v4f_store(p->total + s, v4f_splat(0.0f));
  }
}

INLINE void end_panel(const Panel *p, int32_t e, float *const rows[SIDE], int32_t count, int32_t clear_nan) {
  v4f factors[2];
  for (int32_t s = 0; s < 2; s++) {
    const v4f total = v4f_load(p->total + 4 * s);
    factors[s] = 1.0f / total;
    if (clear_nan) factors[s] = v4f_select(total > 0.0f, factors[s], v4f_splat(0.0f));
  }
  for (int32_t j = 0; j < e; j += 4) {
    for (int32_t s = 0; s < 2; s++) {
      v4f part[4];
      UNROLL for (int i = 0; i < 4; i++) {
        part[i] = v4f_load(p->sums[j + i] + 4 * s) * factors[s];
        if (clear_nan) part[i] = v4f_select(factors[s] > 0.0f, part[i], v4f_splat(0.0f));
      }
      transpose(part);
      UNROLL for (int i = 0; i < 4; i++) {
        if (4 * s + i < count) v4f_store_lanes(rows[4 * s + i] + j, part[i], e - j);
      }
    }
  }
}

void f32_attention(const float *restrict q, const float *restrict k, const float *restrict v,
                   const float *restrict mask, const float *restrict columns, float *restrict y, int32_t batches,
                   int32_t heads, int32_t share, int32_t queries, int32_t keys, int32_t d, int32_t e, int32_t q_batch,
                   int32_t q_head, int32_t q_row, int32_t k_batch, int32_t k_head, int32_t k_row, int32_t v_batch,
                   int32_t v_head, int32_t v_row, int32_t y_batch, int32_t y_head, int32_t y_row, int32_t mask_batch,
                   int32_t mask_head, int32_t mask_row, int32_t columns_batch, int32_t columns_head,
                   int32_t columns_row, int32_t spread, float scale, float cap, int32_t clear_nan, int32_t begin, int32_t end) {
  (void)batches;  // the plan's bounds of y need it
  const int32_t widest = d > e ? d : e;
  const int32_t size = widest > ATTENTION_MIDDLE ? ATTENTION_WIDE_ROWS : widest > ATTENTION_NARROW ? ATTENTION_ROWS
                                                                                                   : MOST_ROWS;
  const int32_t block = widest > ATTENTION_MIDDLE ? WIDE_KEYS : KEYS;
  const int32_t rows = share * queries, blocks = (rows + size - 1) / size, groups = heads / share;
  const int32_t width = (d + 3) / 4 * 4;  // of q, which is transposed four by four
  Panel panels[PANELS];
  float lanes[MOST_LANES][SIDE];
  for (int32_t p = 0; p * SIDE < size; p++) {
    panels[p].q = lanes + p * LANES_OF(width, e);
    panels[p].sums = panels[p].q + width;
    panels[p].weights = panels[p].sums + e + TALL;
  }
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t group = unit / blocks % groups, batch = unit / blocks / groups;
    const int32_t first = unit % blocks * size, left = rows - first;
    const int32_t some = left < size ? left : size;
    const float *keys_of = k + batch * k_batch + group * k_head, *values_of = v + batch * v_batch + group * v_head;
    float *to[MOST_ROWS];
    for (int32_t p = 0; p * SIDE < some; p++) {
      const float *from[SIDE];
      for (int32_t i = 0; i < SIDE; i++) {
        const int32_t at = first + (p * SIDE + i < some ? p * SIDE + i : some - 1);
        const int32_t head = group * share + at / queries, row = at % queries;
        from[i] = q + batch * q_batch + head * q_head + row * q_row;
        to[p * SIDE + i] = y + batch * y_batch + head * y_head + row * y_row;
        panels[p].masks[i] = mask + batch * mask_batch + head * mask_head + row * mask_row;
        panels[p].columns[i] = columns + batch * columns_batch + head * columns_head + row * columns_row;
      }
      begin_panel(&panels[p], d, e, from, scale);
    }
    const int32_t mask_rows = !mask ? 0 : mask_row || (mask_head && share > 1) ? SIDE : 1;
    for (int32_t at = 0; at < keys; at += block) {
      const int32_t count = keys - at < block ? keys - at : block;
      for (int32_t p = 0; p * SIDE < some; p++) {
        panels[p].hidden = mask_rows && !columns && is_hidden(&panels[p], at, count, mask_rows);
        if (panels[p].hidden) continue;
        score_block(&panels[p], keys_of + at * k_row, k_row, count, d);
        if (cap != 0.0f) cap_block(&panels[p], count, cap);
        if (columns) add_mask_of_parts(&panels[p], at, count, spread);
        else if (mask_rows) add_mask_of(&panels[p], at, count);
      }
      for (int32_t p = 0; p * SIDE < some; p++) {
        v4f shrink[2];
        if (panels[p].hidden) continue;
        weigh(&panels[p], count, shrink);
        gather_block(&panels[p], values_of + at * v_row, v_row, count, e, shrink);
      }
    }
    for (int32_t p = 0; p * SIDE < some; p++) end_panel(&panels[p], e, to + p * SIDE, some - p * SIDE, clear_nan);
  }
}
