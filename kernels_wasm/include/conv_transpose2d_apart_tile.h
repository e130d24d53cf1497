// Transposed convolution whose windows do not overlap: every output row is one product of an input row, or none. Windows of
// 2x2 outputs of one channel are one product for both rows.
// Included by src/f32_conv_transpose2d_nhwc_apart_<MR>x<NR>.c, which define MR, NR and KERNEL.
//
//   x   [n, ih, iw, ci]             read
//   w   [kh][ceil(kw*co/NR)][NR + ci*NR]  f32_pack_conv_weights's panels: group = window row, columns = (window column, co);
//       where `joined` [NR + ci*NR], columns = (window row, window column)
//   y   [n, ih*sh, iw*sw, co]       written in full: what no window covers is the bias
//   slope  [kw*co], where `joined` [4], read when act is ACTIVATION_PRELU
//   joined  whether a panel has both rows of the windows. Needs: NR = 4, co = 1, kh = kw = sh = sw = 2
//   Needs: kh <= sh, kw <= sw, no pads, no dilation, one group, no residual; y overlaps neither x, w nor slope.
//
// Units: input rows, n * ih.
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

#if NR == 4
// The columns a and b of the first `count` pixels side by side: one row of 2x2 outputs of each.
INLINE void store_pairs(v4f acc[MR][NV], float *y, int32_t count, const int a, const int b) {
  UNROLL for (int r = 0; r < MR; r += 2, y += 4) {
    const v4f both = {acc[r][0][a], acc[r][0][b], acc[r + 1][0][a], acc[r + 1][0][b]};
    if (r + 1 < count) {
      v4f_store(y, both);
    } else if (r < count) {
      v4f_store_first(y, both, 2);
    }
  }
}
#endif

// The pixels of an input row from x on times a row of the windows' panels, to the output row at y; where `joined`, to that
// one and the next.
INLINE void run_row(const float *x, const float *w, float *y, int32_t iw, int32_t ci, int32_t columns, int32_t step,
                    const Epilogue *e, int32_t joined) {
  (void)joined;
  for (int32_t ix = 0; ix < iw; ix += MR) {
    const int32_t count = iw - ix < MR ? iw - ix : MR;
    const float *a[MR], *weights = w;
    UNROLL for (int r = 0; r < MR; r++) a[r] = x + (ix + (r < count ? r : count - 1)) * ci;
    for (int32_t column = 0; column < columns; column += NR) {
      const Target to = {y + ix * step + column, step, 0, 0};
      v4f acc[MR][NV];
      weights = multiply(acc, a, start_tile(acc, weights), ci);
#if NR == 4
      if (joined) {
        activate_tile(acc, e, 0, NR);
        store_pairs(acc, to.y, count, 0, 1);
        store_pairs(acc, to.y + iw * step, count, 2, 3);
        continue;
      }
#endif
      store_tile(acc, e, &to, count, column, columns - column);
    }
  }
}

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t co, int32_t kh, int32_t kw, int32_t sh, int32_t sw, const float *slope, int32_t joined,
            int32_t act, float lo, float hi, int32_t begin, int32_t end) {
  (void)n, (void)ih;
  const int curved = act > ACTIVATION_PRELU;  // a whole row at once: narrow tiles would leave most lanes of it empty
  const Epilogue e = {0, 0, slope, curved ? ACTIVATION_CLAMP : act, lo, hi};
  const int32_t columns = kw * co, step = sw * co, panel_size = NR + ci * NR, rows = joined ? 1 : sh;
  for (int32_t row = begin; row < end; row++) {
    for (int32_t ky = 0; ky < rows; ky++) {
      float *line = y + (row * sh + ky) * iw * step;
      const int32_t gap = ky < kh ? kw : 0;
      const float *panels = w + ky * ((columns + NR - 1) / NR) * panel_size;
      if (gap) run_row(x + row * iw * ci, panels, line, iw, ci, columns, step, &e, joined);
      if (gap < sw) fill_gaps(w, line, iw, gap, sw, co, panel_size, &e);
    }
    if (curved) activate_rows(y + row * sh * iw * step, 0, 1, sh * iw * step, act);
  }
}
