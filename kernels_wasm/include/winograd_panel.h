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
#include "winograd_pieces.h"

enum { SIDE = WINOGRAD_SIDE, OUT = WINOGRAD_OUT };

// m[points][tiles][NR] = v[points][tiles][ci] * turned[points][ci][NR] of the first `count` tiles; what lies behind them
// is computed too. Needs: tiles % MR == 0
INLINE void multiply_points(const float *turned, const float *v, float *m, const int32_t points, const int32_t tiles,
                            int32_t count, int32_t ci) {
  for (int32_t point = 0; point < points; point++) {
    const float *from = v;
    float *to = m;
    for (int32_t t = 0; t < count; t += MR) {
      const float *a[MR];
      v4f acc[MR][NV];
      UNROLL for (int r = 0; r < MR; r++) {
        a[r] = from;
        from += ci;
      }
      EACH_SUM(acc[r][j] = v4f_splat(0.0f));
      multiply(acc, a, turned, ci);
      EACH_SUM(v4f_store(to + r * NR + 4 * j, acc[r][j]));
      to += MR * NR;
    }
    turned += ci * NR;
    v += tiles * ci;
    m += tiles * NR;
  }
}


// Whether nothing but bias, bounds and a curve of what was stored ends `columns` outputs.
INLINE int ends_simply(const Epilogue *e, int32_t columns) {
  return !e->residual && e->act != ACTIVATION_PRELU && columns >= NR;
}

INLINE v4f least_of(const Epilogue *e) { return v4f_splat(e->act == ACTIVATION_CLAMP ? e->lo : -INFINITE); }
INLINE v4f most_of(const Epilogue *e) { return v4f_splat(e->act == ACTIVATION_CLAMP ? e->hi : INFINITE); }
