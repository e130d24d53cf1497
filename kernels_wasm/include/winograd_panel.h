// The products of Winograd's float kernels: transformed inputs of tiles, point by point, times panels of 8 outputs.
#pragma once

#if defined(__wasm_relaxed_simd__)
#define MR 6
#else
#define MR 4
#endif
#define NR 8
#include "simd.h"
#if !SIMD  // no plan for this build takes these kernels: short code
#undef UNROLL
#define UNROLL NO_UNROLL
#endif
#include "conv2d_panel.h"
#include "winograd.h"

enum { SIDE = WINOGRAD_SIDE, OUT = WINOGRAD_OUT };

// m[points][tiles][NR] = v[points][tiles][ci] * turned[points][ci][NR] of the first `count` tiles. Needs: tiles % MR == 0
INLINE void multiply_points(const float *turned, const float *v, float *m, const int32_t points, const int32_t tiles,
                            int32_t count, int32_t ci) {
  for (int32_t point = 0; point < points; point++, turned += ci * NR) {
    for (int32_t t = 0; t < count; t += MR) {
      const float *a[MR];
      v4f acc[MR][NV];
      UNROLL for (int r = 0; r < MR; r++) a[r] = v + (point * tiles + (t + r < count ? t + r : t)) * ci;
      EACH_SUM(acc[r][j] = v4f_splat(0.0f));
      multiply(acc, a, turned, ci);
      EACH_SUM(v4f_store(m + (point * tiles + t + r) * NR + 4 * j, acc[r][j]));
    }
  }
}
