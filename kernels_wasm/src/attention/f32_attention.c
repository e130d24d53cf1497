// Attention of one batch: y = softmax(q kT * scale + mask) v. Keys come in blocks, and what is summed so far shrinks
// when a block brings a larger logit, so that no row of logits is ever in memory.
//
//   q, y  [heads, queries, d] and [heads, queries, e]: head h, row i from h * q_head + i * q_row on (y_head, y_row)
//   k     [groups][ceil(keys/8)] panels: 8 unused, then [d][8]      as f32_pack_conv_weights makes them of keys
//   v     [groups][ceil(e/8)] panels: 8 unused, then [keys][8]      likewise
//   mask  row i of head h from h * mask_head + i * mask_row on, read up to 12 bytes past its end; 0 = none
//
// `share` heads in a row read one group. With clear_nan a row whose weights are no numbers is 0.
// Needs: e <= ATTENTION_MAX_WIDTH; y overlaps nothing.
//
// Units: heads * ceil(queries / ATTENTION_ROWS).
#include "lanes.h"
#include "math.h"

#define ROWS ATTENTION_ROWS
#define KEYS 64
#define LOWEST -3.402823466e38f

// sums[i] += a[i][0 .. count) * b[0 .. count)[8] for ROWS rows; rows of a are a_row apart.
INLINE void products(const float *const *a, const float *b, int32_t count, v4f sums[ROWS][2]) {
  NO_UNROLL for (int32_t k = 0; k < count; k++, b += 8) {
    const v4f left = v4f_load(b), right = v4f_load(b + 4);
    UNROLL for (int32_t i = 0; i < ROWS; i++) {
      const v4f s = v4f_load_splat(a[i] + k);
      sums[i][0] = v4f_madd(s, left, sums[i][0]);
      sums[i][1] = v4f_madd(s, right, sums[i][1]);
    }
  }
}

void f32_attention(const float *restrict q, const float *restrict k, const float *restrict v,
                   const float *restrict mask, float *restrict y, int32_t heads, int32_t share, int32_t queries,
                   int32_t keys, int32_t d, int32_t e, int32_t q_head, int32_t q_row, int32_t y_head, int32_t y_row,
                   int32_t mask_head, int32_t mask_row, float scale, int32_t clear_nan, int32_t begin, int32_t end) {
  (void)heads;  // the plan's bounds of y need it
  const int32_t blocks = (queries + ROWS - 1) / ROWS, panels = (e + 7) / 8;
  const v4f none = v4f_splat(0.0f);
  float weights[ROWS][KEYS], sums[ROWS][ATTENTION_MAX_WIDTH];
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t head = unit / blocks, first = unit % blocks * ROWS, group = head / share;
    const float *rows[ROWS], *from[ROWS], *masks[ROWS], *keys_of = k + group * ((keys + 7) / 8) * 8 * (d + 1);
    float top[ROWS], total[ROWS];
    for (int32_t i = 0; i < ROWS; i++) {
      const int32_t row = first + i < queries ? first + i : queries - 1;
      rows[i] = q + head * q_head + row * q_row;
      masks[i] = mask ? mask + head * mask_head + row * mask_row : 0;
      from[i] = weights[i];
      top[i] = LOWEST;
      total[i] = 0.0f;
      for (int32_t j = 0; j < panels * 8; j += 4) v4f_store(sums[i] + j, none);
    }
    for (int32_t at = 0; at < keys; at += KEYS) {
      const int32_t count = keys - at < KEYS ? keys - at : KEYS;
      for (int32_t j = 0; j < count; j += 8) {
        v4f logits[ROWS][2];
        UNROLL for (int32_t i = 0; i < ROWS; i++) logits[i][0] = logits[i][1] = none;
        products(rows, keys_of + (at + j) * (d + 1) + 8, d, logits);
        UNROLL for (int32_t i = 0; i < ROWS; i++) {
          v4f_store(weights[i] + j, logits[i][0]);
          v4f_store(weights[i] + j + 4, logits[i][1]);
        }
      }
      for (int32_t i = 0; i < ROWS; i++) {
        v4f most = v4f_splat(top[i]), sum = none;
        for (int32_t j = 0; j < count; j += 4) {
          v4f logit = v4f_load(weights[i] + j) * scale;
          if (mask) logit += v4f_load(masks[i] + at + j);
          logit = v4f_first_lanes(logit, count - j, v4f_splat(-INFINITE));
          v4f_store(weights[i] + j, logit);
          most = v4f_max(most, logit);
        }
        most = FOLD(v4f_max, most);
        for (int32_t j = 0; j < count; j += 4) {
          const v4f weight = v4f_exp(v4f_load(weights[i] + j) - most);
          v4f_store(weights[i] + j, weight);
          sum += weight;
        }
        const v4f shrink = v4f_exp(v4f_splat(top[i]) - most);
        total[i] = total[i] * shrink[0] + FOLD(plus, sum)[0];
        if (at && most[0] > top[i]) {
          for (int32_t j = 0; j < panels * 8; j += 4) v4f_store(sums[i] + j, v4f_load(sums[i] + j) * shrink);
        }
        top[i] = most[0];
      }
      for (int32_t p = 0; p < panels; p++) {
        v4f part[ROWS][2];
        UNROLL for (int32_t i = 0; i < ROWS; i++) {
          part[i][0] = v4f_load(sums[i] + p * 8);
          part[i][1] = v4f_load(sums[i] + p * 8 + 4);
        }
        products(from, v + (group * panels + p) * 8 * (keys + 1) + 8 + at * 8, count, part);
        UNROLL for (int32_t i = 0; i < ROWS; i++) {
          v4f_store(sums[i] + p * 8, part[i][0]);
          v4f_store(sums[i] + p * 8 + 4, part[i][1]);
        }
      }
    }
    for (int32_t i = 0; i < ROWS && first + i < queries; i++) {
      const v4f factor = 1.0f / v4f_splat(total[i]);
      const int clear = clear_nan && !(total[i] > 0.0f);
      float *to = y + head * y_head + (first + i) * y_row;
      for (int32_t j = 0; j < e; j += 4) {
        v4f_store_lanes(to + j, clear ? none : v4f_load(sums[i] + j) * factor, e - j);
      }
    }
  }
}
