// The register tile of all dense products: MR rows by NR columns of sums, fed from panels of NR columns.
// Included once per file, after MR and NR are defined. acc + one row of weights + one value must fit 15 registers:
// what spills runs at half the speed. 6x8 just fits where multiplication and addition are one instruction, 5x8 where
// the product needs a register of its own. NR < 4 lays the four lanes along the depth instead (dot_rows.h).
#pragma once

#if NR == 1 || NR == 3
#include "dot_rows.h"
#else
#include "panel_columns.h"

// The residual under the tile: whole vectors, as many as hold one of the columns.
INLINE void add_residual(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel,
                         int32_t columns) {
  const float *p = e->residual + to->pixel * e->residual_c + channel;
  UNROLL for (int r = 0; r < MR; r++) {
    UNROLL for (int j = 0; j < NV; j++) {
      if (4 * j < columns) acc[r][j] += v4f_load(p + 4 * j);
    }
    p += r + 1 < count ? to->pixel_step * e->residual_c : 0;
  }
}

INLINE void store_rows(v4f acc[MR][NV], const Target *to, int32_t count, int32_t columns) {
  float *y = to->y;
  UNROLL for (int r = 0; r < MR; r++) {
    if (r < count) {
      UNROLL for (int j = 0; j < NV; j++) {
        if (columns >= 4 * j + 4) {
          v4f_store(y + 4 * j, acc[r][j]);
        } else if (columns > 4 * j) {
          v4f_store_first(y + 4 * j, acc[r][j], columns - 4 * j);
        }
      }
    }
    y += to->y_step;
  }
}

// Ends and stores the first `count` rows and `left` columns; the rest are padding of the tile.
INLINE void store_tile(v4f acc[MR][NV], const Epilogue *e, const Target *to, int32_t count, int32_t channel,
                       int32_t left) {
  const int32_t columns = left < NR ? left : NR;
  if (LIKELY(ends_in_registers(e, channel, columns))) {
    if (e->residual && channel < e->residual_c) add_residual(acc, e, to, count, channel, columns);
    activate_tile(acc, e, channel, columns);
    if (LIKELY(columns == NR)) {
      store_rows(acc, to, count, NR);
    } else {
      store_rows(acc, to, count, columns);
    }
    if (UNLIKELY(ends_stored(e))) activate_rows(to->y, to->y_step, count, columns, e->act);
    return;
  }
  float sums[MR][4 * NV];
  UNROLL for (int r = 0; r < MR; r++) {
    UNROLL for (int j = 0; j < NV; j++) v4f_store(&sums[r][4 * j], acc[r][j]);
  }
  for (int32_t r = 0; r < count; r++) {
    finish_channels(sums[r], to->y + r * to->y_step, to->pixel + r * to->pixel_step, channel, columns, e);
  }
}
#endif
