// The transforms of Winograd's F(4x4, 3x3), one line at a time, for the points 0, +-1/sqrt 2, +-sqrt 2 and infinity: sums
// are about as exact as those of windows, with 0, +-1 and +-2 they would be four times less so.
#pragma once

#include "simd.h"

#define ROOT 1.41421356237309505f
enum { WINOGRAD_SIDE = 6, WINOGRAD_OUT = 4 };  // of a tile's inputs and outputs

// One line of six inputs, transformed.
INLINE void turn_inputs(const v4f d[WINOGRAD_SIDE], v4f to[WINOGRAD_SIDE]) {
  const v4f a = v4f_madd(d[2], v4f_splat(-2.0f), d[4]), b = v4f_madd(d[1], v4f_splat(-2.0f), d[3]) * (ROOT / 2);
  const v4f e = v4f_madd(d[2], v4f_splat(-0.5f), d[4]), f = v4f_madd(d[1], v4f_splat(-0.5f), d[3]) * ROOT;
  to[0] = v4f_madd(d[2], v4f_splat(-2.5f), d[0] + d[4]);
  to[1] = a + b;
  to[2] = a - b;
  to[3] = e + f;
  to[4] = e - f;
  to[5] = v4f_madd(d[3], v4f_splat(-2.5f), d[1] + d[5]);
}

// One line of six sums back to four outputs.
INLINE void turn_back(const v4f m[WINOGRAD_SIDE], v4f to[WINOGRAD_OUT]) {
  const v4f s = m[1] + m[2], d = (m[1] - m[2]) * (ROOT / 4), p = m[3] + m[4], q = (m[3] - m[4]) * ROOT;
  to[0] = m[0] + s + p;
  to[1] = v4f_madd(d, v4f_splat(2.0f), q);
  to[2] = v4f_madd(p, v4f_splat(2.0f), s * 0.5f);
  to[3] = v4f_madd(q, v4f_splat(2.0f), d) + m[5];
}

// One line of three weights, transformed.
INLINE void turn_weights(v4f a, v4f b, v4f c, v4f to[WINOGRAD_SIDE]) {
  const v4f near = (a + 0.5f * c) * (-2.0f / 3), middle = b * (-ROOT / 3);
  const v4f far = (a + 2.0f * c) * (1.0f / 6), outer = b * (ROOT / 6);
  to[0] = a;
  to[1] = near + middle;
  to[2] = near - middle;
  to[3] = far + outer;
  to[4] = far - outer;
  to[5] = c;
}
