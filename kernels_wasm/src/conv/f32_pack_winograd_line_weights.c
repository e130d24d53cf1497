// Transforms weights of three in a line for f32_conv2d_nhwc_winograd_line: they become 6.
//
//   panels  [units][8 + 3 * ci * 8]  read: what f32_pack_conv_weights makes, 8 outputs a panel
//   y       [units][6][ci][8]        written
//   Needs: y does not overlap panels.
// Units: panels.
#include "winograd.h"

enum { NR = 8, SIDE = WINOGRAD_SIDE };

void f32_pack_winograd_line_weights(const float *restrict panels, float *restrict y, int32_t ci, int32_t begin,
                                    int32_t end) {
  const int32_t step = ci * NR;
  for (int32_t panel = begin; panel < end; panel++) {
    const float *w = panels + panel * (NR + 3 * step) + NR;
    for (int32_t at = 0; at < step; at += 4) {
      v4f line[SIDE];
      turn_weights(v4f_load(w + at), v4f_load(w + step + at), v4f_load(w + 2 * step + at), line);
      UNROLL for (int k = 0; k < SIDE; k++) v4f_store(y + (panel * SIDE + k) * step + at, line[k]);
    }
  }
}
