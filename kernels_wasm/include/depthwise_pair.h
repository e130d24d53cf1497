// Two neighbouring output rows of a 3x3 depthwise convolution at once: PAIR pixels of each by 4 channels. Sums of both
// rows take turns, so that fewer products wait for each other; with stride 1 a column that is loaded feeds six sums.
// Included once per file, after S and B are defined and K is 3.
//
//   Needs: both rows' windows lie inside the image from top to bottom; ow >= S * PAIR.
#pragma once

#include "depthwise_block.h"

#define PAIR 4  // with two rows of taps and a column, all registers
#define PAIR_COLUMNS ((PAIR - 1) * S + 3)
#define PAIR_ROWS (S + 3)

// acc[b] += column j of a window row, where it is one of the three of pixel b
INLINE void add_column(v4f acc[PAIR], v4f column, const v4f tap[3], const int j) {
  UNROLL for (int b = 0; b < PAIR; b++) {
    const int kx = j - b * S;
    if (kx < 0 || kx >= 3) continue;
    acc[b] = v4f_madd(column, tap[kx], acc[b]);
    PIN(acc[b]);
  }
}

// One row of the image under the taps of the upper output row, of the lower one, or both. Taps outside are skipped.
INLINE void add_row(v4f upper[PAIR], v4f lower[PAIR], const float *p, const v4f above[3], const v4f below[3],
                    const Depthwise *d, int32_t ix, const int inside) {
  UNROLL for (int j = 0; j < PAIR_COLUMNS; j++) {
    if (inside || (uint32_t)(ix + j) < (uint32_t)d->iw) {
      const v4f column = v4f_load(p);
      if (above) add_column(upper, column, above, j);
      if (below) add_column(lower, column, below, j);
    }
    p += d->x_stride;
    PIN(p);
  }
}

INLINE void load_taps(v4f tap[3], const float *w) {
  UNROLL for (int kx = 0; kx < 3; kx++) tap[kx] = v4f_load(w + 4 * kx);
}

#if S == 1
// The four rows of the image, from the top: every sum adds its taps in the order of a single row.
INLINE void add_pair(v4f upper[PAIR], v4f lower[PAIR], const Depthwise *d, const float *p, const float *w, int32_t ix,
                     const int inside) {
  const int32_t pitch = d->x_pitch;
  v4f first[3], second[3], third[3];
  load_taps(first, w);
  add_row(upper, lower, p, first, 0, d, ix, inside);
  load_taps(second, w + 12);
  add_row(upper, lower, p + pitch, second, first, d, ix, inside);
  load_taps(third, w + 24);
  add_row(upper, lower, p + 2 * pitch, third, second, d, ix, inside);
  add_row(upper, lower, p + 3 * pitch, 0, third, d, ix, inside);
}
#else
// Both output rows' own rows of the image, side by side.
INLINE void add_pair(v4f upper[PAIR], v4f lower[PAIR], const Depthwise *d, const float *corner, const float *w,
                     int32_t ix, const int inside) {
  const int32_t pitch = d->x_pitch;
  UNROLL for (int ky = 0; ky < 3; ky++) {
    v4f tap[3];
    load_taps(tap, w + 12 * ky);
    const float *p = corner + ky * pitch, *q = p + S * pitch;
    UNROLL for (int j = 0; j < PAIR_COLUMNS; j++) {
      if (inside || (uint32_t)(ix + j) < (uint32_t)d->iw) {
        add_column(upper, v4f_load(p), tap, j);
        add_column(lower, v4f_load(q), tap, j);
      }
      p += d->x_stride;
      q += d->x_stride;
      PIN(p);
      PIN(q);
    }
  }
}
#endif

INLINE void run_pair_block(const Depthwise *d, int32_t row, int32_t image, int32_t iy, int32_t ox, const int inside) {
  const int32_t ix = ox * S - d->pad_left, pixel = row * d->ow + ox;
  const float *corner = d->x + (image * d->ih + iy) * d->x_pitch + ix * d->x_stride, *w = d->w;
  float *y = d->y + row * d->y_pitch + ox * d->y_stride;
  NO_UNROLL for (int32_t channel = 0; channel < d->c; channel += 4) {
    const v4f bias = v4f_load(w);
    v4f upper[PAIR] = {bias, bias, bias, bias}, lower[PAIR] = {bias, bias, bias, bias};
    add_pair(upper, lower, d, corner + channel, w + 4, ix, inside);
    store_block(upper, PAIR, d, y + channel, pixel, PAIR, channel);
    store_block(lower, PAIR, d, y + d->y_pitch + channel, pixel + d->ow, PAIR, channel);
    w += BLOCK_SIZE;
  }
}

INLINE void run_pair(const Depthwise *d, int32_t row, int32_t image, int32_t iy) {
  for (int32_t ox = 0; ox < d->ow; ox += PAIR) {
    const int32_t start = d->ow - ox >= PAIR ? ox : d->ow - PAIR, ix = start * S - d->pad_left;
    if (ix >= 0 && ix + PAIR_COLUMNS <= d->iw) {
      run_pair_block(d, row, image, iy, start, 1);
    } else {
      run_pair_block(d, row, image, iy, start, 0);
    }
  }
}
