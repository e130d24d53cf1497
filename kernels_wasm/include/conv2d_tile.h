// Dense and grouped convolution as a register-tiled product: MR output pixels by NR output channels.
// Included by src/f32_conv2d_nhwc_<MR>x<NR>.c, which define MR, NR and KERNEL, and PANEL where that is not NR.
//
//   x         [n, ih, iw, x_stride]  read; a pixel's groups*ci channels lie at its start
//   w         f32_pack_conv_weights's panels of PANEL outputs: groups * ceil(co/PANEL) of PANEL + kh*kw*ci*PANEL floats
//   y         [n, oh, ow, y_stride]  written: the first groups*co channels of each pixel
//   ci, co    channels of ONE group
//   Needs: y does not overlap x or w; it may be the residual only if no unit reads another's pixels (1x1).
//   Padded taps count as zero.
//
// Units: groups * ceil(n*oh*ow / MR) * ceil(co / NR) tiles, in an order that keeps weights in the first cache.
#pragma once

#include "conv2d_panel.h"
#include "tile_order.h"
#if SIMD && MR > 1 && NR == 8
#include "matrix_tile.h"
#endif

INLINE void run_tiles(const Conv *c, const int one_tap, int32_t begin, int32_t end) {
  Order o = start_order(c, begin);
  Place place = find_place(c, o.tile * MR);
#if SIMD && NR == 8
  float packed[one_tap ? 1 : PACKED + 4];
  const int32_t window = c->kh * c->kw * c->ci, packs = !one_tap && is_worth_packing(c, window);
#endif
  while (o.unit < end) {
    const float *corner = 0, *a[MR];
    int32_t depth = 0;
    if (one_tap) {
      find_pixels(a, c, &o);
    } else {
      corner = find_corner(c, &place);
      UNROLL for (int r = 0; r < MR; r++) a[r] = corner;
#if SIMD && NR == 8
      if (packs && !corner) {
        const int32_t left = c->pixels - o.tile * MR;
        pack_windows(packed, a, c, place, left < MR ? left : MR, o.group);
        depth = window;
      }
#endif
    }
    for (; o.panel < o.first + o.width && o.unit < end; o.panel++, o.unit++) {
      run_panel(c, one_tap, depth, &place, corner, a, o.tile, o.group, o.panel, panel_of(c, &o));
    }
    if (next_tile(&o)) {
      place = (Place){0, 0, 0};
    } else if (!one_tap) {
      step_place(c, &place, MR);
    }
  }
}

// 1x1, stride 1, no pads: a product of matrices. A function of its own has the registers for itself.
static __attribute__((noinline)) void run_matrix(const Conv *c, int32_t begin, int32_t end) {
  run_tiles(c, 1, begin, end);
}

static __attribute__((noinline)) void run_windows(const Conv *c, int32_t begin, int32_t end) {
  run_tiles(c, 0, begin, end);
}

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t x_stride, int32_t oh, int32_t ow, int32_t co, int32_t y_stride, int32_t kh, int32_t kw,
            int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual,
            int32_t residual_c, const float *slope, int32_t act, float lo, float hi, int32_t begin, int32_t end) {
  const Conv c = {x,  w,  y,  x_stride, y_stride, n * oh * ow, ih, iw,      ci,       oh, ow,
                  co, kh, kw, sh,       sw,       dh,          dw, pad_top, pad_left, {residual, residual_c, slope, act, lo, hi}};
  const int one_tap = kh * kw == 1 && sh == 1 && sw == 1 && oh == ih && ow == iw;
#if SIMD && MR > 1 && NR == 8
  if (one_tap && ci % 4 == 0) {
    if (act == ACTIVATION_PRELU) {
      run_sloped(&c, begin, end);
    } else {
      run_clamped(&c, begin, end);
    }
    return;
  }
#endif
  if (one_tap) {
    run_matrix(&c, begin, end);
  } else {
    run_windows(&c, begin, end);
  }
}
