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

#include "epilogue.h"
#include "zeros.h"

#define NV (NR / 4)
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

// One k: acc += a[.][at] * w[at][.]
INLINE void multiply_one(v4f acc[MR][NV], const float *const a[MR], const float *w, int at) {
  v4f b[NV];
  UNROLL for (int j = 0; j < NV; j++) b[j] = v4f_load(w + at * NR + 4 * j);
  UNROLL for (int r = 0; r < MR; r++) {
    const v4f s = v4f_load_splat(a[r] + at);
    UNROLL for (int j = 0; j < NV; j++) acc[r][j] = v4f_madd(s, b[j], acc[r][j]);
  }
  UNROLL for (int r = 0; r < MR; r++) {
    UNROLL for (int j = 0; j < NV; j++) PIN(acc[r][j]);
  }
}

// acc += rows[MR][length] * w[length][NR]; the weights' end.
INLINE const float *multiply(v4f acc[MR][NV], const float *const rows[MR], const float *w, int32_t length) {
  const float *a[MR];
  UNROLL for (int r = 0; r < MR; r++) a[r] = rows[r];
  int32_t k = length;
  NO_UNROLL for (; k >= 4; k -= 4) {
    UNROLL for (int r = 0; r < MR; r++) PIN(a[r]);
    PIN(w);
    UNROLL for (int u = 0; u < 4; u++) multiply_one(acc, a, w, u);
    UNROLL for (int r = 0; r < MR; r++) a[r] += 4;
    w += 4 * NR;
  }
  NO_UNROLL for (; k > 0; k--) {
    UNROLL for (int r = 0; r < MR; r++) PIN(a[r]);
    PIN(w);
    multiply_one(acc, a, w, 0);
    UNROLL for (int r = 0; r < MR; r++) a[r]++;
    w += NR;
  }
  return w;
}

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

// Stores one tile: rows beyond `count` are copies of the last one and stay unwritten.
INLINE void store_tile(v4f acc[MR][NV], const Conv *c, int32_t pixel, int32_t count, int32_t column, int32_t channel) {
  const Epilogue *e = &c->e;
  float *y = c->y + pixel * c->y_stride + channel;
  const int32_t columns = c->co - column < NR ? c->co - column : NR;
  if (LIKELY(columns == NR && is_plain(e, channel, NR))) {
    if (e->residual && channel < e->residual_c) {
      const float *p = e->residual + pixel * e->residual_c + channel;
      UNROLL for (int r = 0; r < MR; r++) {
        UNROLL for (int j = 0; j < NV; j++) acc[r][j] += v4f_load(p + 4 * j);
        p += r + 1 < count ? e->residual_c : 0;
      }
    }
    if (e->act == ACT_PRELU) {
      UNROLL for (int j = 0; j < NV; j++) {
        const v4f slope = v4f_load(e->slope + channel + 4 * j);
        UNROLL for (int r = 0; r < MR; r++) acc[r][j] = prelu(acc[r][j], slope);
      }
    } else {
      const v4f lo = v4f_splat(e->lo), hi = v4f_splat(e->hi);
      UNROLL for (int r = 0; r < MR; r++) {
        UNROLL for (int j = 0; j < NV; j++) acc[r][j] = v4f_clamp(acc[r][j], lo, hi);
      }
    }
    UNROLL for (int r = 0; r < MR; r++) {
      if (r < count) {
        UNROLL for (int j = 0; j < NV; j++) v4f_store(y + 4 * j, acc[r][j]);
      }
      y += c->y_stride;
    }
    return;
  }
  float sums[MR][NR];
  UNROLL for (int r = 0; r < MR; r++) {
    UNROLL for (int j = 0; j < NV; j++) v4f_store(&sums[r][4 * j], acc[r][j]);
  }
  for (int32_t r = 0; r < count; r++) finish_channels(sums[r], y + r * c->y_stride, pixel + r, channel, columns, e);
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
      UNROLL for (int j = 0; j < NV; j++) {
        const v4f bias = v4f_load(w + 4 * j);
        UNROLL for (int r = 0; r < MR; r++) acc[r][j] = bias;
      }
      if (pointwise) {
        multiply(acc, a, w + NR, c->ci);
      } else {
        add_taps(acc, c, &rows, group, w + NR);
      }
      store_tile(acc, c, pixel, count, panel * NR, group * c->co + panel * NR);
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
