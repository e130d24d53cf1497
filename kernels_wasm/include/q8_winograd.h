// Winograd's F(4x4, 3x3) in whole numbers, one line at a time, for the points 0, +-1, +-2 and infinity. Denominators
// are multiplied out: turned back along both axes, sums are 9 * 64 times those of windows. Arithmetic modulo 2^32 then
// gives the exact sum, times the inverse of 9 and by 64, while it has no more than 25 bits and a sign.
//
// Bounds: bytes 0 to 255 turn into -8160 to 17340 along both axes, weights into at most 49 times their size.
#pragma once

#include "simd.h"

#if !SIMD  // few wait for this build: short code
#undef INLINE
#define INLINE static __attribute__((noinline, unused))
#endif

enum { SIDE = 6, OUT = 4 };  // of a tile's inputs and outputs
#define INVERSE_OF_9 954437177u  // 9 * this = 1 modulo 2^32

// One line of six inputs, transformed.
INLINE void turn_inputs(const v8s d[SIDE], v8s to[SIDE]) {
  const v8s a = d[4] - (d[2] << 2), b = d[3] - (d[1] << 2), e = d[4] - d[2], f = (d[3] - d[1]) << 1;
  to[0] = e - ((d[2] - d[0]) << 2);
  to[1] = a + b;
  to[2] = a - b;
  to[3] = e + f;
  to[4] = e - f;
  to[5] = d[5] - d[3] - (f << 1);
}

// One line of three weights, transformed.
INLINE void turn_weights(int32_t a, int32_t b, int32_t c, int32_t to[SIDE]) {
  to[0] = 3 * a;
  to[1] = a + c + b;
  to[2] = a + c - b;
  to[3] = a + 4 * c + 2 * b;
  to[4] = a + 4 * c - 2 * b;
  to[5] = 3 * c;
}

// One line of six sums back to four outputs, 24 times as large.
INLINE void turn_back(const v4i m[SIDE], v4i to[OUT]) {
  const v4i s = m[1] + m[2], d = m[1] - m[2], p = m[3] + m[4], q = m[3] - m[4];
  to[0] = p - (s << 2) + (m[0] << 1);
  to[1] = (q << 1) - (d << 2);
  to[2] = (p - s) << 2;
  to[3] = ((q + m[5]) << 3) - (d << 2);
}

// What is 9 * 64 times as large, modulo 2^32.
INLINE v4i exact_part(v4i sums) { return (v4i)((v4u)sums * ((v4u){} + INVERSE_OF_9)) >> 6; }
