// Depthwise convolution of a fixed window: B neighbouring output pixels by 4 channels in registers.
// Included by src/f32_depthwise_nhwc_<K>x<K>_s<S>.c, which define K, S, B and KERNEL.
//
//   x   [n, ih, iw, x_stride]      read: a pixel's c channels lie at its start
//   w   [ceil(c/4)][4 + K*K*4]     f32_pack_depthwise_weights's blocks: bias, then the taps
//   y   [n, oh, ow, y_stride]      written: the first c channels of each pixel
//   post, factor  [n, oh, ow, c] or 0, read: y = post + result * factor, the product rounded as by itself; no curve then.
//                 The scalar build has no time for it
//   Needs: kh = kw = K, sh = sw = S, dh = dw = 1 (the arguments stand for the general kernel), or any dh = dw where
//          K is 3, S is 1 and there is no residual; y overlaps neither x, w nor post.  Padded taps count as zero.
//
// Each window row brings K weights into registers and streams (B-1)*S + K columns past B sums. B = 8 is the best of
// 4, 6, 7, 8 and 10 in V8 on every map from 7x7 to 112x112.
// Units: output rows, n * oh.
#pragma once

#include "depthwise_block.h"
#if K == 3 && SIMD && !(GATHERS && S == 2)
#include "depthwise_pair.h"
#endif

#if K > 5 || (GATHERS && S == 2)
#define EACH_ROW NO_UNROLL  // a row of taps is work enough
#else
#define EACH_ROW UNROLL
#endif

// Adds the window of B outputs; `corner` is where the first one begins, at (iy, ix). Taps outside are skipped.
INLINE void add_window(v4f acc[B], const Depthwise *d, const float *corner, const float *w, int32_t iy, int32_t ix,
                       const int inside) {
  EACH_ROW for (int ky = 0; ky < K; ky++) {
    if (!inside && (uint32_t)(iy + ky) >= (uint32_t)d->ih) continue;
    v4f tap[K];
    UNROLL for (int kx = 0; kx < K; kx++) tap[kx] = v4f_load(w + (ky * K + kx) * 4);
    const float *p = corner + ky * d->x_pitch;
    UNROLL for (int j = 0; j < COLUMNS; j++) {
      if (inside || (uint32_t)(ix + j) < (uint32_t)d->iw) {
        const v4f column = v4f_load(p);
        UNROLL for (int b = 0; b < B; b++) {
          const int kx = j - b * S;
          if (kx < 0 || kx >= K) continue;
          acc[b] = v4f_madd(column, tap[kx], acc[b]);
          PIN(acc[b]);
        }
      }
      p += d->x_stride;
      PIN(p);
    }
  }
}

// One block of B output pixels, all channels.
INLINE void run_block(const Depthwise *d, int32_t row, int32_t image, int32_t iy, int32_t ox, const int inside) {
  const int32_t ix = ox * S - d->pad_left, count = d->ow - ox < B ? d->ow - ox : B;
  const float *corner = d->x + (image * d->ih + iy) * d->x_pitch + ix * d->x_stride, *w = d->w;
  float *y = d->y + row * d->y_pitch + ox * d->y_stride;
  NO_UNROLL for (int32_t channel = 0; channel < d->c; channel += 4) {
    v4f acc[B];
    const v4f bias = v4f_load(w);
    UNROLL for (int b = 0; b < B; b++) acc[b] = bias;
    add_window(acc, d, corner + channel, w + 4, iy, ix, inside);
    store_block(acc, B, d, y + channel, row * d->ow + ox, count, channel);
    w += BLOCK_SIZE;
  }
}

// One output row.
INLINE void run_row(const Depthwise *d, int32_t row, int32_t image, int32_t iy) {
  const int whole_rows = iy >= 0 && iy + K <= d->ih;
  for (int32_t ox = 0; ox < d->ow; ox += B) {
    // The last block moves back over pixels that are done already, so that it is whole.
    const int32_t start = d->ow - ox >= B || d->ow < B ? ox : d->ow - B, ix = start * S - d->pad_left;
    if (whole_rows && ix >= 0 && ix + COLUMNS <= d->iw) {
      run_block(d, row, image, iy, start, 1);
    } else {
      run_block(d, row, image, iy, start, 0);
    }
  }
}

#if K == 3 && S == 1
INLINE int32_t floor_divide(int32_t a, int32_t b) { return (a - (a < 0 ? b - 1 : 0)) / b; }

// The pixels of every `step`-th row and column that meet in the window of output (row, column), as an image.
INLINE Depthwise lattice(const Depthwise *d, int32_t step, int32_t row, int32_t column) {
  const int32_t image = row / d->oh, iy = row - image * d->oh - d->pad_top, ix = column - d->pad_left;
  const int32_t down = floor_divide(iy, step), across = floor_divide(ix, step);
  const int32_t first = iy - down * step, left = ix - across * step;
  Depthwise l = *d;
  l.x = d->x + (image * d->ih + first) * d->x_pitch + left * d->x_stride;
  l.y = d->y + row * d->y_pitch + column * d->y_stride;
  l.ih = (d->ih - first + step - 1) / step, l.iw = (d->iw - left + step - 1) / step;
  l.ow = (d->ow - column + step - 1) / step, l.x_stride *= step, l.y_stride *= step;
  l.x_pitch *= step, l.y_pitch *= step, l.pad_top = -down, l.pad_left = -across;
  return l;
}

// Rows of a dilated window: those of windows without dilation on every `step`-th row and column.
static __attribute__((noinline)) void run_dilated(const Depthwise *d, int32_t step, int32_t begin, int32_t end) {
  for (int32_t row = begin; row < end; row++) {
    for (int32_t column = 0; column < step; column++) {
      const Depthwise l = lattice(d, step, row, column);
      run_row(&l, 0, 0, -l.pad_top);
    }
    end_rows(d, row, 1);
  }
}
#endif

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t c, int32_t x_stride, int32_t oh, int32_t ow, int32_t y_stride, int32_t kh, int32_t kw, int32_t sh,
            int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual,
            int32_t residual_c, const float *slope, int32_t act, float lo, float hi, const float *post, float factor,
            int32_t begin, int32_t end) {
  (void)n, (void)kh, (void)kw, (void)sh, (void)sw, (void)dw;
  Depthwise d = {x,        w,       y,        ih,            iw,            c, x_stride, oh, ow,
                 y_stride, pad_top, pad_left, iw * x_stride, ow * y_stride, {residual, residual_c, slope, act, lo, hi},
                 0,        0,       0,        post,          factor};
  set_ending(&d);
#if K == 3 && S == 1
  if (UNLIKELY(dh > 1)) {
    run_dilated(&d, dh, begin, end);
    return;
  }
#else
  (void)dh;
#endif
  for (int32_t row = begin; row < end; row++) {
    const int32_t image = row / oh, iy = (row - image * oh) * S - pad_top;
#ifdef PAIR
    if (row + 1 < end && row + 1 < (image + 1) * oh && iy >= 0 && iy + PAIR_ROWS <= ih && ow >= S * PAIR) {
      run_pair(&d, row, image, iy);
      end_rows(&d, row, 2);
      row++;
      continue;
    }
#endif
    run_row(&d, row, image, iy);
    end_rows(&d, row, 1);
  }
}
