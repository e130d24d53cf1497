// Transforms 3x3 weights for f32_conv2d_nhwc_winograd: a window's 9 weights become 36. A window of 5x5 or 6x6 that steps by
// two pixels of a picture becomes one of 3x3 over squares of 2x2 pixels first.
//
//   panels  [units][8 + k * k * ci * 8]  read: what f32_pack_conv_weights makes, 8 outputs a panel
//   y       [units][36][depth][8]        written
//   k, depth   as f32_conv2d_nhwc_winograd has them
//   top, left  rows and columns of the first squares that lie before the window: 0 or 1
//   Needs: k + top and k + left are at most 6 where k is not 3; y does not overlap panels.
// Units: panels.
#include "winograd.h"

enum { NR = 8, SIDE = WINOGRAD_SIDE, HALF = WINOGRAD_SQUARE / 2 };

// to[3][3][WINOGRAD_SQUARE][NR] = the window over squares; what it lacks is zero.
static void lay_squares(float *to, const float *w, int32_t k, int32_t top, int32_t left) {
  for (int32_t i = 0; i < 9 * WINOGRAD_SQUARE * NR; i += 4) v4f_store(to + i, v4f_splat(0.0f));
  for (int32_t ky = top; ky < k + top; ky++) {
    for (int32_t kx = left; kx < k + left; kx++) {
      float *square = to + ((ky / 2 * 3 + kx / 2) * WINOGRAD_SQUARE + ky % 2 * HALF + kx % 2 * (HALF / 2)) * NR;
      for (int32_t i = 0; i < HALF / 2 * NR; i += 4, w += 4) v4f_store(square + i, v4f_load(w));
    }
  }
}

void f32_pack_winograd_weights(const float *restrict panels, float *restrict y, int32_t ci, int32_t k, int32_t depth,
                               int32_t top, int32_t left, int32_t begin, int32_t end) {
  float squares[9 * WINOGRAD_SQUARE * NR];
  for (int32_t panel = begin; panel < end; panel++) {
    const float *w = panels + panel * (NR + k * k * ci * NR) + NR;
    if (k > 3) {
      lay_squares(squares, w, k, top, left);
      w = squares;
    }
    for (int32_t at = 0; at < depth * NR; at += 4) {
      float *to = y + panel * SIDE * SIDE * depth * NR + at;
      v4f half[SIDE][3], line[SIDE];
      for (int32_t x = 0; x < 3; x++) {
        const float *column = w + x * depth * NR + at;
        turn_weights(v4f_load(column), v4f_load(column + 3 * depth * NR), v4f_load(column + 6 * depth * NR), line);
        UNROLL for (int k = 0; k < SIDE; k++) half[k][x] = line[k];
      }
      for (int32_t k = 0; k < SIDE; k++) {
        turn_weights(half[k][0], half[k][1], half[k][2], line);
        UNROLL for (int x = 0; x < SIDE; x++) v4f_store(to + (k * SIDE + x) * depth * NR, line[x]);
      }
    }
  }
}
