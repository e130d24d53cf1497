// The register tile of quantised dense products: Q8_ROWS pixels by Q8_COLUMNS outputs, sums of int32.
#pragma once

#include "q8_form.h"

#if !SIMD  // few wait for this build: short code
#undef UNROLL
#define UNROLL NO_UNROLL
#endif

enum { ROWS = Q8_ROWS, SIX = 6 };  // pixels of a tile; of one and half of another, which bytes are multiplied in

typedef struct {
  v4i low[SIX], high[SIX];  // columns 0..3 and 4..7
} Tile;

INLINE v4i group_splat(const uint8_t *a) { return (v4i)v4f_load_splat((const float *)a); }

// The groups of ROWS rows that lie side by side, each in all lanes.
INLINE void splat_groups(v4i groups[ROWS], const uint8_t *a) {
  _Static_assert(ROWS == 4, "one for each lane");
  const v4i all = v4i_load(a);
  groups[0] = splat_lane(all, 0), groups[1] = splat_lane(all, 1);
  groups[2] = splat_lane(all, 2), groups[3] = splat_lane(all, 3);
}

// t += a[groups][rows][4] * b[groups][8][4], bytes or pairs of int16. Of SIX rows the last two lie from `more` on, in
// another tile.
INLINE void multiply(Tile *t, const uint8_t *a, const uint8_t *more, const uint8_t *b, int32_t groups, const int rows,
                     const int wide) {
  const int step = GROUP * (rows < ROWS ? rows : ROWS);
  NO_UNROLL for (; groups > 0; groups--, a += step, more += step, b += GROUP * COLUMNS) {
    PIN(a);
    PIN(b);
    if (rows > ROWS) PIN(more);
    const v16s b_low = v16s_load(b), b_high = v16s_load(b + 16);
    v4i whole[ROWS];
    if (GATHERS && rows >= ROWS) splat_groups(whole, a);
    UNROLL for (int r = 0; r < rows; r++) {
      const v4i group = GATHERS && rows >= ROWS && r < ROWS ? whole[r]
                                                            : group_splat(r < ROWS ? a + GROUP * r : more + GROUP * (r - ROWS));
      if (wide) {
        t->low[r] += v4i_dot_i16((v8s)group, (v8s)b_low);
        t->high[r] += v4i_dot_i16((v8s)group, (v8s)b_high);
      } else {
        t->low[r] = v4i_dot4_i8(b_low, (v16u)group, t->low[r]);
        t->high[r] = v4i_dot4_i8(b_high, (v16u)group, t->high[r]);
      }
    }
  }
}

// The same of int16, in half as many multiplications: x0 w0 + x1 w1 is (x0 + w1)(x1 + w0) less x0 x1 and w0 w1, which
// are known before (Winograd, 1968). Groups of b are crossed in exchanged places, the one of a is added to the other's.
INLINE void multiply_crossed(Tile *t, const uint8_t *a, const uint8_t *b, int32_t groups, const int rows) {
  NO_UNROLL for (; groups > 0; groups -= 2, a += 2 * GROUP * rows, b += 2 * GROUP * COLUMNS) {
    PIN(a);
    PIN(b);
    const v8s first_low = v8s_load(b), first_high = v8s_load(b + 16), other_low = v8s_load(b + 32);
    UNROLL for (int r = 0; r < rows; r++) {
      PIN(a);
      v8s first = (v8s)group_splat(a + GROUP * r);
      PIN(first);
      v8s both_low = first + first_low, both_high = first + first_high;
      PIN(both_low);
      PIN(both_high);
      PIN(a);
      v8s other = (v8s)group_splat(a + GROUP * (rows + r));
      PIN(other);
      t->low[r] += v4i_dot_i16(both_low, other + other_low);
      PIN(t->low[r]);
      PIN(b);
      v8s other_high = v8s_load(b + 48);
      PIN(other_high);
      t->high[r] += v4i_dot_i16(both_high, other + other_high);
      PIN(t->high[r]);
    }
  }
}
