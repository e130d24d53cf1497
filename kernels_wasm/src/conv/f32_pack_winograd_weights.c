// Transforms 3x3 weights for f32_conv2d_nhwc_winograd: a window's 9 weights become 36.
//
//   panels  [units][8 + 9 * ci * 8]  read: what f32_pack_conv_weights makes, 8 outputs a panel
//   y       [units][36][ci][8]       written
//   Needs: y does not overlap panels.
// Units: panels.
#include "winograd.h"

enum { NR = 8, SIDE = WINOGRAD_SIDE };

void f32_pack_winograd_weights(const float *restrict panels, float *restrict y, int32_t ci, int32_t begin,
                               int32_t end) {
  for (int32_t panel = begin; panel < end; panel++) {
    const float *w = panels + panel * (NR + 9 * ci * NR) + NR;
    for (int32_t at = 0; at < ci * NR; at += 4) {
      float *to = y + panel * SIDE * SIDE * ci * NR + at;
      v4f half[SIDE][3], line[SIDE];
      for (int32_t x = 0; x < 3; x++) {
        const float *column = w + x * ci * NR + at;
        turn_weights(v4f_load(column), v4f_load(column + 3 * ci * NR), v4f_load(column + 6 * ci * NR), line);
        UNROLL for (int k = 0; k < SIDE; k++) half[k][x] = line[k];
      }
      for (int32_t k = 0; k < SIDE; k++) {
        turn_weights(half[k][0], half[k][1], half[k][2], line);
        UNROLL for (int x = 0; x < SIDE; x++) v4f_store(to + (k * SIDE + x) * ci * NR, line[x]);
      }
    }
  }
}
