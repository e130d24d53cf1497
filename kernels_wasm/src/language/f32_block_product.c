// y = x wT + bias + residual of a few rows x and weights w that stay in the file's blocks. Whole numbers are multiplied
// with whole numbers, exactly; each 32 of them end in one product of scales.
//
//   x         what q8_block_rows made of [rows, k]; for weights of floats [rows, k] itself
//   w         [n, k] in blocks of `type` (include/blocks.h)
//   bias      [n], or 0        residual, y  [rows, n]; the residual may be y, or 0
//   place     its second number says how many rows count, the others become 0; no place = all
//
// Needs: k % 32 == 0, of K types k % 256 == 0. Units: panels of BLOCKS_PANEL rows of w, for several rows BLOCKS_WIDE.
#include "block_panel.h"

enum { PANEL = BLOCKS_PANEL, WIDE = BLOCKS_WIDE };

typedef struct {
  const int8_t *q, *rest;      // [rows, k], high and low bytes; or q in 16 bits, see q8_block_rows.c
  const float *scales, *sums;  // [rows, k/32], [rows, k/16]
  int32_t bytes_are;           // what byte_dots says of this processor
} Rounded;

// y[0 .. rows) for the rows of one panel: float weights, any number of rows.
static __attribute__((noinline)) SMALL void product_of_floats(const float *x, const uint8_t *const *w, float *y, int32_t rows,
                                                        int32_t k, int32_t n, int32_t type, int32_t count) {
  float weights[32];
  for (int32_t i = 0; i < count; i++) {
    for (int32_t r = 0; r < rows; r++) y[r * n + i] = 0.0f;
    for (int32_t at = 0; at < k / 32; at++) {
      blocks_floats(type, w[i], at, weights);
      for (int32_t r = 0; r < rows; r++) {
        const float *row = x + r * k + 32 * at;
#if SIMD
        v4f sum = v4f_splat(0.0f);
        for (int32_t j = 0; j < 32; j += 4) sum = v4f_madd(v4f_load(row + j), v4f_load(weights + j), sum);
        y[r * n + i] += v4f_sum(sum);
#else
        for (int32_t j = 0; j < 32; j++) y[r * n + i] += row[j] * weights[j];
#endif
      }
    }
  }
}

#if SIMD
#define ONE(TYPE) \
  case TYPE: return dots_of_one(TYPE, bytes_are, w, x.q, x.rest, x.scales, x.sums, k)

INLINE v4f one_row_of(int32_t bytes_are, const uint8_t *const *w, Rounded x, int32_t k, int32_t type) {
  switch (type) {
    ONE(BLOCKS_Q4_0);
    ONE(BLOCKS_Q5_0);
    ONE(BLOCKS_Q5_1);
    ONE(BLOCKS_Q8_0);
    ONE(BLOCKS_Q4_K);
    ONE(BLOCKS_Q5_K);
    ONE(BLOCKS_Q6_K);
    default: return dots_of_one(BLOCKS_Q4_1, bytes_are, w, x.q, x.rest, x.scales, x.sums, k);
  }
}

INLINE v4f one_row(const uint8_t *const *w, Rounded x, int32_t k, int32_t type) {
  if (x.bytes_are == BYTES_INEXACT) return one_row_of(BYTES_INEXACT, w, x, k, type);
  return one_row_of(x.bytes_are, w, x, k, type);
}

// Some rows: the panel's weights are opened once, laid out eight rows side by side. y [rows, WIDE]; whole fours of rows.
static __attribute__((noinline)) void many_rows(Rounded x, const uint8_t *const *w, float *y, int32_t rows, int32_t k,
                                                int32_t type) {
  Opened opened[OPENED];
  for (int32_t i = 0; i < (rows + 3) / 4 * 4 * WIDE; i += 4) v4f_store(y + i, v4f_splat(0.0f));
  for (int32_t from = 0; from < k / 32; from += OPENED) {
    const int32_t blocks = k / 32 - from < OPENED ? k / 32 - from : OPENED;
    open_panel(type, w, from, blocks, opened);
    for (int32_t r = 0; r < rows; r += 4) {
      const int16_t *q[4];
      const float *scales[4], *sums[4];
      for (int32_t i = 0; i < 4; i++) {
        const int32_t row = r + i < rows ? r + i : rows - 1;
        q[i] = (const int16_t *)x.q + row * k + 32 * from;
        scales[i] = x.scales + row * (k / 32) + from;
        sums[i] = x.sums + row * (k / 16) + 2 * from;
      }
      if (type == BLOCKS_Q6_K) {
        dots_of_four(1, opened, q, scales, sums, blocks, y + r * WIDE);
      } else {
        dots_of_four(0, opened, q, scales, sums, blocks, y + r * WIDE);
      }
    }
  }
}
#else
INLINE v4f one_row(const uint8_t *const *w, Rounded x, int32_t k, int32_t type) {
  return dots_of_one(type, x.bytes_are, w, x.q, x.rest, x.scales, x.sums, k);
}
#endif

SMALL void f32_block_product(const void *x, const uint8_t *w, const float *bias, const float *residual, float *y,
                       const int32_t *place, int32_t rows, int32_t k, int32_t n, int32_t type, int32_t begin,
                       int32_t end) {
  const int8_t *q = x;
  const float *scales = (const float *)(q + 2 * rows * k);
  const Rounded rounded = {q, q + rows * k, scales, scales + rows * (k / 32), byte_dots()};
  const int32_t bytes = blocks_row_bytes(type, k);
  int32_t some = rows;
  if (place && place[1] < rows) some = place[1] > 0 ? place[1] : 0;
  const int32_t width = rows > 1 ? WIDE : PANEL;
  for (int32_t panel = begin; panel < end; panel++) {
    const int32_t first = panel * width, count = n - first < width ? n - first : width;
    const uint8_t *of[WIDE];
    for (int32_t i = 0; i < width; i++) of[i] = w + (first + (i < count ? i : count - 1)) * bytes;
    float sums[BLOCKS_MAX_ROWS * WIDE];
    if (blocks_are_floats(type)) {
      product_of_floats(x, of, sums, some, k, width, type, count);
#if SIMD
    } else if (rows > 1) {
      many_rows(rounded, of, sums, some, k, type);
#endif
    } else {
      for (int32_t r = 0; r < some; r++) {
        const Rounded row = {
            q + r * k, rounded.rest + r * k, scales + r * (k / 32), rounded.sums + r * (k / 16), rounded.bytes_are,
        };
        for (int32_t i = 0; i < width; i += PANEL) v4f_store(sums + r * width + i, one_row(of + i, row, k, type));
      }
    }
    for (int32_t r = 0; r < rows; r++) {
      float *to = y + r * n + first;
      for (int32_t i = 0; i < count; i += 4) {
        const int32_t lanes = count - i < 4 ? count - i : 4;
        v4f sum = r < some ? v4f_load(sums + r * width + i) : v4f_splat(0.0f);
        if (r < some && bias) sum += v4f_load_lanes(bias + first + i, lanes);
        if (r < some && residual) sum += v4f_load_lanes(residual + r * n + first + i, lanes);
        v4f_store_lanes(to + i, sum, lanes);
      }
    }
  }
}

// Rows of a table of blocks, as floats: what the words of a text begin as.
//
//   table  [words, k] in blocks of `type` (include/blocks.h)   read
//   ids    [units]  whole numbers; others than 0 to words - 1 count as 0
//   y      [units, k]  written
//
// Needs: k % 32 == 0, of K types k % 256 == 0. Units: ids.
SMALL void f32_block_rows(const uint8_t *table, const int32_t *ids, float *y, int32_t words, int32_t k, int32_t type,
                    int32_t begin, int32_t end) {
  const int32_t bytes = blocks_row_bytes(type, k);
  for (int32_t i = begin; i < end; i++) {
    const int32_t id = ids[i] >= 0 && ids[i] < words ? ids[i] : 0;
    for (int32_t at = 0; at < k / 32; at++) blocks_floats(type, table + id * bytes, at, y + i * k + 32 * at);
  }
}
