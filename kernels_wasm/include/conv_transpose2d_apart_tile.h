// Transposed convolution whose windows do not overlap: every output row is one product of an input row, or none.
// Included by src/f32_conv_transpose2d_nhwc_apart_<MR>x<NR>.c, which define MR, NR and KERNEL.
//
//   x   [n, ih, iw, ci]             read
//   w   [kh][ceil(kw*co/NR)][NR + ci*NR]  f32_pack_conv_weights's panels: group = window row, columns = (window column, co)
//   y   [n, ih*sh, iw*sw, co]       written in full: what no window covers is the bias
//   slope  [kw*co], read when act is ACTIVATION_PRELU
//   Needs: kh <= sh, kw <= sw, no pads, no dilation, one group, no residual; y overlaps neither x, w nor slope.
//
// Units: output rows, n * ih * sh.
#pragma once

#include "product_tile.h"

// Columns of each pixel's stride from window column `first` on: the bias, which stands at the head of the panels.
static __attribute__((noinline)) void fill_gaps(const float *w, float *y, int32_t pixels, int32_t first, int32_t sw,
                                                int32_t co, int32_t panel_size, const Epilogue *e) {
  for (int32_t c = 0; c < co; c++) {
    const float bias = w[c / NR * panel_size + c % NR], low = bias < e->lo ? e->lo : bias;
    const float clamped = low > e->hi ? e->hi : low, sloped = e->slope && bias < 0.0f ? bias * e->slope[c] : bias;
    const float value = e->act == ACTIVATION_PRELU ? sloped : clamped;
    for (int32_t x = 0; x < pixels; x++) {
      for (int32_t kx = first; kx < sw; kx++) y[(x * sw + kx) * co + c] = value;
    }
  }
}

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t co, int32_t kh, int32_t kw, int32_t sh, int32_t sw, const float *slope, int32_t act,
            float lo, float hi, int32_t begin, int32_t end) {
  (void)n, (void)ih;
  const int curved = act > ACTIVATION_PRELU;  // a whole row at once: narrow tiles would leave most lanes of it empty
  const Epilogue e = {0, 0, slope, curved ? ACTIVATION_CLAMP : act, lo, hi};
  const int32_t columns = kw * co, step = sw * co, panels = (columns + NR - 1) / NR, panel_size = NR + ci * NR;
  for (int32_t row = begin; row < end; row++) {
    const int32_t from_row = row / sh, ky = row - from_row * sh, gap = ky < kh ? kw : 0;
    float *line = y + row * iw * step;
    for (int32_t ix = 0; ix < iw && gap; ix += MR) {
      const int32_t count = iw - ix < MR ? iw - ix : MR;
      const float *a[MR];
      UNROLL for (int r = 0; r < MR; r++) a[r] = x + (from_row * iw + ix + (r < count ? r : count - 1)) * ci;
      for (int32_t panel = 0; panel < panels; panel++) {
        const Target to = {line + ix * step + panel * NR, step, 0, 0};
        v4f acc[MR][NV];
        const float *weights = start_tile(acc, w + (ky * panels + panel) * panel_size);
        multiply(acc, a, weights, ci);
        store_tile(acc, &e, &to, count, panel * NR, columns - panel * NR);
      }
    }
    if (gap < sw) fill_gaps(w, line, iw, gap, sw, co, panel_size, &e);
    if (curved) activate_rows(line, 0, 1, iw * step, act);
  }
}
