// Transposed convolution whose windows do not overlap: every output row is one product of an input row.
// Included by src/f32_conv_transpose2d_nhwc_apart_<MR>x<NR>.c, which define MR, NR and KERNEL.
//
//   x   [n, ih, iw, ci]             read
//   w   [sh][ceil(sw*co/NR)][NR + ci*NR]  f32_pack_conv_weights's panels: group = window row, columns = (window column, co)
//   y   [n, ih*sh, iw*sw, co]       written in full
//   Needs: window = stride, no pads, no dilation, one group, no residual, no PReLU; y overlaps neither x nor w.
//
// Units: output rows, n * ih * sh.
#pragma once

#include "product_tile.h"

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t co, int32_t sh, int32_t sw, int32_t act, float lo, float hi, int32_t begin,
            int32_t end) {
  (void)n, (void)ih;
  const int curved = act > ACTIVATION_PRELU;  // a whole row at once: narrow tiles would leave most lanes of it empty
  const Epilogue e = {0, 0, 0, curved ? ACTIVATION_CLAMP : act, lo, hi};
  const int32_t columns = sw * co, panels = (columns + NR - 1) / NR, panel_size = NR + ci * NR;
  for (int32_t row = begin; row < end; row++) {
    const int32_t from_row = row / sh, ky = row - from_row * sh;
    for (int32_t ix = 0; ix < iw; ix += MR) {
      const int32_t count = iw - ix < MR ? iw - ix : MR;
      const float *a[MR];
      UNROLL for (int r = 0; r < MR; r++) a[r] = x + (from_row * iw + ix + (r < count ? r : count - 1)) * ci;
      for (int32_t panel = 0; panel < panels; panel++) {
        const Target to = {y + (row * iw + ix) * columns + panel * NR, columns, 0, 0};
        v4f acc[MR][NV];
        const float *weights = start_tile(acc, w + (ky * panels + panel) * panel_size);
        multiply(acc, a, weights, ci);
        store_tile(acc, &e, &to, count, panel * NR, columns - panel * NR);
      }
    }
    if (curved) activate_rows(y + row * iw * columns, 0, 1, iw * columns, act);
  }
}
