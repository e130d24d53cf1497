// Convolution of an RGB image, square window: MR neighbouring output pixels by 8 channels in registers.
// Included by src/f32_conv2d_nhwc_image_<K>x<K>_s<S>.c, which define K, S and KERNEL.
//
//   x         [n, ih, iw, 3]                    read
//   w         [ceil(co/8)][8 + K*K*3*8]         f32_pack_conv_weights's panels of 8 outputs
//   y         [n, oh, ow, y_stride]             written: the first co channels of each pixel
//   Needs: ci = x_stride = 3, kh = kw = K, sh = sw = S, dh = dw = 1 (the arguments stand for the general kernel);
//          y overlaps neither x, w nor the residual.  Padded taps count as zero.
//
// The window rows of neighbours are one run of the image, so every value has a constant place in it. Where a window
// leaves the image the runs are copied between zeros first.
// Units: output rows, n * oh.
#pragma once

#if defined(__wasm_relaxed_simd__)
#define MR 6  // what fits the registers, see product_tile.h
#elif defined(__wasm_simd128__)
#define MR 5
#else
#define MR 4
#endif
#define NR IMAGE_TILE_COLUMNS
#include "product_tile.h"

#if SIMD
#define UNROLL_RUN UNROLL
#else
#define UNROLL_RUN NO_UNROLL  // four scalars a vector: whole runs would be too large to ship
#endif

#define RUN (K * 3)                      // floats of one window row
#define STEP (S * 3)                     // floats between neighbouring windows
#define SEGMENT ((MR - 1) * STEP + RUN)  // floats of one row of all windows of a tile
#define PITCH ((SEGMENT + 7) / 4 * 4)    // of the copy, with room for a whole vector at the end

typedef struct {
  const float *restrict x;
  const float *restrict w;
  float *restrict y;
  int32_t ih, iw, oh, ow, co, y_stride, pad_top, pad_left;
  Epilogue e;
  Ending ending;
} Image;

// Copies the tile's rows from (iy, ix) on; what is outside the image becomes zero.
static void copy_window(float *to, const float *image, int32_t ih, int32_t iw, int32_t iy, int32_t ix) {
  for (int32_t i = 0; i < K * PITCH; i += 4) v4f_store(to + i, v4f_splat(0.0f));
  const int32_t first = ix < 0 ? -ix * 3 : 0;
  const int32_t end = (iw - ix) * 3 < SEGMENT ? (iw - ix) * 3 : SEGMENT;
  for (int32_t ky = 0; ky < K; ky++, to += PITCH) {
    if ((uint32_t)(iy + ky) >= (uint32_t)ih) continue;
    const float *from = image + ((iy + ky) * iw + ix) * 3;
    int32_t i = first;
    NO_UNROLL for (; i + 4 <= end; i += 4) v4f_store(to + i, v4f_load(from + i));
    NO_UNROLL for (; i < end; i++) to[i] = from[i];
  }
}

// acc += one value of each window, the first of them at p, times a row of weights.
INLINE void add_value(v4f acc[MR][NV], const float *p, const float *w) {
  const v4f b0 = v4f_load(w), b1 = v4f_load(w + 4);
  UNROLL for (int r = 0; r < MR; r++) {
    const v4f s = v4f_load_splat(p + r * STEP);
    acc[r][0] = v4f_madd(s, b0, acc[r][0]);
    PIN(acc[r][0]);
    acc[r][1] = v4f_madd(s, b1, acc[r][1]);
    PIN(acc[r][1]);
  }
}

// acc += the windows that begin at p, p + STEP, ... with `pitch` floats between their rows.
INLINE void add_window(v4f acc[MR][NV], const float *p, int32_t pitch, const float *w) {
  NO_UNROLL for (int32_t ky = 0; ky < K; ky++) {
    PIN(p);
    PIN(w);
#if GATHERS
    NO_UNROLL for (int32_t k = 0; k + 2 <= RUN; k += 2) {
      const float *a[MR];
      UNROLL for (int r = 0; r < MR; r++) a[r] = p + r * STEP + k;
      multiply_two(acc, a, w + k * NR, NV);
    }
    if (RUN % 2) add_value(acc, p + RUN - 1, w + (RUN - 1) * NR);
#else
    UNROLL_RUN for (int k = 0; k < RUN; k++) add_value(acc, p + k, w + k * NR);
#endif
    p += pitch;
    w += RUN * NR;
  }
}

INLINE void run_tile(const Image *d, int32_t row, int32_t ox, int32_t count) {
  const int32_t image = row / d->oh, iy = (row - image * d->oh) * S - d->pad_top, ix = ox * S - d->pad_left;
  const float *x = d->x + image * d->ih * d->iw * 3, *from = x + (iy * d->iw + ix) * 3;
  int32_t pitch = d->iw * 3;
  float copy[K * PITCH];
  if (iy < 0 || ix < 0 || iy + K > d->ih || ix + (MR - 1) * S + K > d->iw) {
    copy_window(copy, x, d->ih, d->iw, iy, ix);
    from = copy;
    pitch = PITCH;
  }
  const int32_t pixel = row * d->ow + ox;
  const float *w = d->w;
  for (int32_t channel = 0; channel < d->co; channel += NR) {
    const Target to = {d->y + pixel * d->y_stride + channel, d->y_stride, pixel, 1};
    v4f acc[MR][NV];
    add_window(acc, from, pitch, start_tile(acc, w));
    if (SIMD && LIKELY(count == MR && channel + NR <= d->co && d->e.act <= ACTIVATION_PRELU && !d->e.residual)) {
      activate_whole(acc, &d->e, d->e.act, &d->ending, channel, NV);
      store_rows(acc, &to, MR, NR);
    } else {
      store_tile(acc, &d->e, &to, count, channel, d->co - channel);
    }
    w += NR + K * RUN * NR;
  }
}

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t x_stride, int32_t oh, int32_t ow, int32_t co, int32_t y_stride, int32_t kh, int32_t kw,
            int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual,
            int32_t residual_c, const float *slope, int32_t act, float lo, float hi, int32_t begin, int32_t end) {
  (void)n, (void)ci, (void)x_stride, (void)kh, (void)kw, (void)sh, (void)sw, (void)dh, (void)dw;
  Image d = {x, w, y, ih, iw, oh, ow, co, y_stride, pad_top, pad_left, {residual, residual_c, slope, act, lo, hi}, {0, 0, 0}};
  const int curved = SIMD && ends_stored(&d.e) && !residual && y_stride == co;  // once a row is stored
  if (curved) d.e.act = ACTIVATION_CLAMP, d.e.lo = -INFINITE, d.e.hi = INFINITE;
  d.ending = find_ending(&d.e);
  for (int32_t row = begin; row < end; row++) {
    for (int32_t ox = 0; ox < ow; ox += MR) {
      // The last tile moves back over pixels that are done already, so that it is whole.
      run_tile(&d, row, ow - ox >= MR || ow < MR ? ox : ow - MR, ow < MR ? ow : MR);
    }
    if (curved) activate_rows(y + row * ow * co, 0, 1, ow * co, act);
  }
}
