// Transposed convolution as a register-tiled product, gathered: every output pixel sums the taps that reach it.
// Included by src/f32_conv_transpose2d_nhwc_<MR>x<NR>.c, which define MR, NR and KERNEL.
//
//   x         [n, ih, iw, groups * ci]  read
//   w         f32_pack_conv_weights's panels of NR outputs: groups * ceil(co/NR) of NR + kh*kw*ci*NR floats
//   y         [n, oh, ow, groups * co]  written in full
//   ci, co    channels of ONE group
//   Needs: y overlaps neither x, w nor the residual.
//
// Output (oy, ox) takes tap (ky, kx) from input ((oy + pad_top - ky*dh) / sh, (ox + pad_left - kx*dw) / sw) where both
// divisions are exact. Pixels that are sw apart use the same taps: MR of them are a tile.
// Units: output rows, n * oh.
#pragma once

#include "product_tile.h"
#include "zeros.h"

typedef struct {
  const float *restrict x;
  const float *restrict w;
  float *restrict y;
  int32_t ih, iw, ci, oh, ow, co, groups, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
  Epilogue e;
} Transposed;

// acc += the inputs ix, ix + 1, ... of a row times one tap; pixels outside the row are zero.
INLINE void add_tap(v4f acc[MR][NV], const Transposed *t, const float *row, int32_t ix, const float *w) {
  const float *a[MR];
  int32_t zero[MR];
  const int32_t x_stride = t->groups * t->ci;
  UNROLL for (int r = 0; r < MR; r++) {
    zero[r] = (uint32_t)(ix + r) >= (uint32_t)t->iw;
    a[r] = zero[r] ? zeros : row + (ix + r) * x_stride;
  }
  for (int32_t done = 0; done < t->ci; done += ZEROS) {
    w = multiply(acc, a, w, t->ci - done < ZEROS ? t->ci - done : ZEROS);
    UNROLL for (int r = 0; r < MR; r++) a[r] += zero[r] ? 0 : ZEROS;
  }
}

// Sums all taps that reach the tile of outputs ox, ox + sw, ... of a row.
INLINE void add_taps(v4f acc[MR][NV], const Transposed *t, int32_t row, int32_t ox, int32_t group, const float *w) {
  const int32_t image = row / t->oh, oy = row - image * t->oh;
  for (int32_t ky = 0; ky < t->kh; ky++) {
    const int32_t down = oy + t->pad_top - ky * t->dh, iy = down / t->sh;
    if (down < 0 || iy * t->sh != down || iy >= t->ih) continue;
    const float *from = t->x + (image * t->ih + iy) * t->iw * t->groups * t->ci + group * t->ci;
    for (int32_t kx = 0; kx < t->kw; kx++) {
      const int32_t right = ox + t->pad_left - kx * t->dw, ix = right / t->sw;
      if (ix * t->sw != right || ix >= t->iw || ix + MR <= 0) continue;
      add_tap(acc, t, from, ix, w + (ky * t->kw + kx) * t->ci * NR);
    }
  }
}

INLINE void run_row(const Transposed *t, int32_t row) {
  const int32_t panels = (t->co + NR - 1) / NR, panel_size = NR + t->kh * t->kw * t->ci * NR;
  const int32_t channels = t->groups * t->co;
  for (int32_t panel = 0; panel < t->groups * panels; panel++) {
    const int32_t group = panel / panels, column = (panel - group * panels) * NR;
    const float *w = t->w + panel * panel_size;
    for (int32_t phase = 0; phase < t->sw && phase < t->ow; phase++) {
      for (int32_t ox = phase; ox < t->ow; ox += MR * t->sw) {
        const int32_t left = (t->ow - ox + t->sw - 1) / t->sw, pixel = row * t->ow + ox;
        const int32_t channel = group * t->co + column;
        const Target to = {t->y + pixel * channels + channel, t->sw * channels, pixel, t->sw};
        v4f acc[MR][NV];
        const float *taps = start_tile(acc, w);
        add_taps(acc, t, row, ox, group, taps);
        store_tile(acc, &t->e, &to, left < MR ? left : MR, channel, t->co - column);
      }
    }
  }
}

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t oh, int32_t ow, int32_t co, int32_t groups, int32_t kh, int32_t kw, int32_t sh,
            int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual,
            int32_t residual_c, const float *slope, int32_t act, float lo, float hi, int32_t begin, int32_t end) {
  (void)n;
  const Transposed t = {x,  w,  y,  ih, iw, ci,      oh,       ow, co, groups, kh, kw,
                        sh, sw, dh, dw, pad_top, pad_left, {residual, residual_c, slope, act, lo, hi}};
  for (int32_t row = begin; row < end; row++) run_row(&t, row);
}
