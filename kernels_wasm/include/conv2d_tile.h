// Dense and grouped convolution as a register-tiled product: MR output pixels by NR output channels.
// Included by src/f32_conv2d_nhwc_<MR>x<NR>.c, which define MR, NR and KERNEL.
//
//   x         [n, ih, iw, x_stride]  read; a pixel's groups*ci channels lie at its start
//   w         f32_pack_conv_weights's panels of NR outputs: groups * ceil(co/NR) of NR + kh*kw*ci*NR floats
//   y         [n, oh, ow, y_stride]  written: the first groups*co channels of each pixel
//   ci, co    channels of ONE group
//   Needs: y does not overlap x or w; it may be the residual only if no unit reads another's pixels (1x1).
//   Padded taps count as zero.
//
// Units: groups * ceil(n*oh*ow / MR) * ceil(co / NR) tiles, in an order that keeps weights in the first cache.
#pragma once

#include "product_tile.h"
#include "zeros.h"

#define PANEL_BYTES 16384  // of weights that are used for all pixels before the next ones

typedef struct {
  const float *restrict x;
  const float *restrict w;
  float *restrict y;
  int32_t x_stride, y_stride;
  int32_t pixels, ih, iw, ci, oh, ow, co, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
  Epilogue e;
} Conv;

// Where a tile's rows read: `base` for a 1x1 window, else the corner of each row's window.
typedef struct {
  const float *image[MR];
  int32_t iy[MR], ix[MR];
  int inside;  // no row's window leaves the image
} Rows;

// Adds every tap. Taps of one window row are one run of memory when all of them are inside the image.
INLINE void add_taps(v4f acc[MR][NV], const Conv *c, const Rows *rows, int32_t group, const float *w) {
  const int whole_rows = rows->inside && c->dw == 1 && c->x_stride == c->ci;
  const int32_t taps = whole_rows ? c->kw : 1;
  for (int32_t ky = 0; ky < c->kh; ky++) {
    for (int32_t kx = 0; kx < c->kw; kx += taps) {
      const float *a[MR];
      int32_t zero[MR];
      UNROLL for (int r = 0; r < MR; r++) {
        const int32_t iy = rows->iy[r] + ky * c->dh, ix = rows->ix[r] + kx * c->dw;
        zero[r] = !rows->inside && ((uint32_t)iy >= (uint32_t)c->ih || (uint32_t)ix >= (uint32_t)c->iw);
        a[r] = zero[r] ? zeros : rows->image[r] + (iy * c->iw + ix) * c->x_stride + group * c->ci;
      }
      if (rows->inside) {
        w = multiply(acc, a, w, taps * c->ci);
        continue;
      }
      for (int32_t done = 0; done < c->ci; done += ZEROS) {
        const int32_t length = c->ci - done < ZEROS ? c->ci - done : ZEROS;
        w = multiply(acc, a, w, length);
        UNROLL for (int r = 0; r < MR; r++) a[r] += zero[r] ? 0 : ZEROS;
      }
    }
  }
}

// The windows of the tile that starts at `pixel`; rows past the last pixel repeat it.
INLINE void find_rows(Rows *rows, const Conv *c, int32_t pixel) {
  const int32_t row = pixel / c->ow;
  int32_t ox = pixel - row * c->ow, image = row / c->oh, oy = row - image * c->oh;
  rows->inside = 1;
  UNROLL for (int r = 0; r < MR; r++) {
    const int32_t iy = oy * c->sh - c->pad_top, ix = ox * c->sw - c->pad_left;
    rows->image[r] = c->x + image * c->ih * c->iw * c->x_stride;
    rows->iy[r] = iy;
    rows->ix[r] = ix;
    rows->inside &= iy >= 0 && ix >= 0 && iy + (c->kh - 1) * c->dh < c->ih && ix + (c->kw - 1) * c->dw < c->iw;
    if (pixel + r + 1 < c->pixels && ++ox == c->ow) {
      ox = 0;
      if (++oy == c->oh) {
        oy = 0;
        image++;
      }
    }
  }
}

INLINE void run_tiles(const Conv *c, int32_t begin, int32_t end) {
  const int32_t depth = c->kh * c->kw * c->ci;
  const int32_t panel_size = NR + depth * NR;
  const int32_t panels = (c->co + NR - 1) / NR, tiles = (c->pixels + MR - 1) / MR;
  const int32_t fitting = PANEL_BYTES / (panel_size * 4);
  const int32_t block = fitting < 1 ? 1 : fitting < panels ? fitting : panels;
  const int pointwise = c->kh * c->kw == 1 && c->sh == 1 && c->sw == 1 && c->oh == c->ih && c->ow == c->iw;

  // Unit -> group, block of panels, tile, panel in the block; from there on the counters step.
  int32_t unit = begin;
  int32_t group = unit / (panels * tiles), rest = unit - group * panels * tiles;
  int32_t first = rest / (block * tiles) * block;
  rest -= first * tiles;
  int32_t width = panels - first < block ? panels - first : block;
  int32_t tile = rest / width, panel = first + rest % width;

  while (unit < end) {
    const int32_t pixel = tile * MR;
    const int32_t count = c->pixels - pixel < MR ? c->pixels - pixel : MR;
    Rows rows;
    const float *a[MR];
    if (pointwise) {
      UNROLL for (int r = 0; r < MR; r++) {
        a[r] = c->x + (pixel + (r < count ? r : count - 1)) * c->x_stride + group * c->ci;
      }
    } else {
      find_rows(&rows, c, pixel);
    }
    for (; panel < first + width && unit < end; panel++, unit++) {
      const float *w = c->w + (group * panels + panel) * panel_size;
      v4f acc[MR][NV];
      const float *taps = start_tile(acc, w);
      if (pointwise) {
        multiply(acc, a, taps, c->ci);
      } else {
        add_taps(acc, c, &rows, group, taps);
      }
      const int32_t channel = group * c->co + panel * NR;
      const Target to = {c->y + pixel * c->y_stride + channel, c->y_stride, pixel, 1};
      store_tile(acc, &c->e, &to, count, channel, c->co - panel * NR);
    }
    panel = first;
    if (++tile < tiles) continue;
    tile = 0;
    first += width;
    if (first == panels) {
      first = 0;
      group++;
    }
    width = panels - first < block ? panels - first : block;
    panel = first;
  }
}

void KERNEL(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih, int32_t iw,
            int32_t ci, int32_t x_stride, int32_t oh, int32_t ow, int32_t co, int32_t y_stride, int32_t kh, int32_t kw,
            int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left, const float *residual,
            int32_t residual_c, const float *slope, int32_t act, float lo, float hi, int32_t begin, int32_t end) {
  const Conv c = {x,  w,  y,  x_stride, y_stride, n * oh * ow, ih, iw,      ci,       oh, ow,
                  co, kh, kw, sh,       sw,       dh,          dw, pad_top, pad_left, {residual, residual_c, slope, act, lo, hi}};
  run_tiles(&c, begin, end);
}
