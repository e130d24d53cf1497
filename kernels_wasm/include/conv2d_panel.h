// One tile of a convolution, MR output pixels, times one panel of NR output channels, any window.
// Included once per file, after MR and NR are defined.
//
//   Padded taps count as zero. Rows past the last pixel repeat it, and are not stored.
#pragma once

#include "conv2d_geometry.h"
#include "product_tile.h"
#include "zeros.h"

// The corners of the windows of a tile's rows.
typedef struct {
  const float *image[MR];
  int32_t iy[MR], ix[MR];
} Rows;

#if NR == 1 && SIMD
#define SLIDING 3  // columns of the windows that slide

// The same for neighbours whose windows overlap: each column that is loaded feeds all windows that it is part of.
INLINE void slide(v4f acc[MR][NV], const Conv *c, const float *corner, const float *w) {
  for (int32_t ky = 0; ky < c->kh; ky++, w += SLIDING * c->ci) {
    const float *row = corner + ky * c->dh * c->iw * c->x_stride;
    NO_UNROLL for (int32_t i = 0; i < c->ci; i += 4) {
      v4f tap[SLIDING];
      UNROLL for (int kx = 0; kx < SLIDING; kx++) tap[kx] = v4f_load(w + kx * c->ci + i);
      const float *p = row + i;
      UNROLL for (int j = 0; j < MR + SLIDING - 1; j++) {
        const v4f column = v4f_load(p);
        UNROLL for (int kx = 0; kx < SLIDING; kx++) {
          if (j < kx || j - kx >= MR) continue;
          acc[j - kx][0] = v4f_madd(column, tap[kx], acc[j - kx][0]);
          PIN(acc[j - kx][0]);
        }
        p += c->x_stride;
        PIN(p);
      }
    }
  }
}
#endif

// Adds every tap of MR neighbours whose windows lie inside one image: `corner` is where the first one begins.
// The taps of a window row are one run of memory where neither dilation nor other groups lie between them.
INLINE void add_inside(v4f acc[MR][NV], const Conv *c, const float *corner, Columns w) {
#if NR == 1 && SIMD
  if (c->kw == SLIDING && c->sw == 1 && c->dw == 1 && c->ci % 4 == 0) {
    slide(acc, c, corner, w);
    return;
  }
#endif
  const int32_t taps = c->dw == 1 && c->x_stride == c->ci ? c->kw : 1;
  for (int32_t ky = 0; ky < c->kh; ky++) {
    for (int32_t kx = 0; kx < c->kw; kx += taps) {
      const float *a[MR], *p = corner + (ky * c->dh * c->iw + kx * c->dw) * c->x_stride;
      UNROLL for (int r = 0; r < MR; r++) {
        a[r] = p;
        p += c->sw * c->x_stride;
      }
      w = multiply(acc, a, w, taps * c->ci);
    }
  }
}

// Adds every tap of rows that may leave the image.
INLINE void add_taps(v4f acc[MR][NV], const Conv *c, const Rows *rows, int32_t group, Columns w) {
  for (int32_t ky = 0; ky < c->kh; ky++) {
    for (int32_t kx = 0; kx < c->kw; kx++) {
      const float *a[MR];
      int32_t zero[MR];
      UNROLL for (int r = 0; r < MR; r++) {
        const int32_t iy = rows->iy[r] + ky * c->dh, ix = rows->ix[r] + kx * c->dw;
        zero[r] = (uint32_t)iy >= (uint32_t)c->ih || (uint32_t)ix >= (uint32_t)c->iw;
        a[r] = zero[r] ? zeros : rows->image[r] + (iy * c->iw + ix) * c->x_stride + group * c->ci;
      }
      for (int32_t done = 0; done < c->ci; done += ZEROS) {
        const int32_t length = c->ci - done < ZEROS ? c->ci - done : ZEROS;
        w = multiply(acc, a, w, length);
        UNROLL for (int r = 0; r < MR; r++) a[r] += zero[r] ? 0 : ZEROS;
      }
    }
  }
}

// An output pixel by its coordinates.
typedef struct {
  int32_t image, oy, ox;
} Place;

INLINE Place find_place(const Conv *c, int32_t pixel) {
  const int32_t row = pixel / c->ow, image = row / c->oh;
  return (Place){image, row - image * c->oh, pixel - row * c->ow};
}

INLINE void step_place(const Conv *c, Place *p, int32_t pixels) {
  p->ox += pixels;
  while (p->ox >= c->ow) {
    p->ox -= c->ow;
    if (++p->oy == c->oh) {
      p->oy = 0;
      p->image++;
    }
  }
}

// The corner of the first window if the tile's MR rows are neighbours inside one image, else 0.
INLINE const float *find_corner(const Conv *c, const Place *p) {
  const int32_t iy = p->oy * c->sh - c->pad_top, ix = p->ox * c->sw - c->pad_left;
  const int32_t bottom = iy + (c->kh - 1) * c->dh, right = ix + (MR - 1) * c->sw + (c->kw - 1) * c->dw;
  if (iy < 0 || ix < 0 || bottom >= c->ih || right >= c->iw || p->ox + MR > c->ow) return 0;
  return c->x + ((p->image * c->ih + iy) * c->iw + ix) * c->x_stride;
}

// The windows of the tile's rows one by one; rows past the last pixel repeat it.
INLINE void find_rows(Rows *rows, const Conv *c, Place p, int32_t count) {
  UNROLL for (int r = 0; r < MR; r++) {
    rows->image[r] = c->x + p.image * c->ih * c->iw * c->x_stride;
    rows->iy[r] = p.oy * c->sh - c->pad_top;
    rows->ix[r] = p.ox * c->sw - c->pad_left;
    if (r + 1 < count) step_place(c, &p, 1);
  }
}

#if SIMD && NR == 8
#define PACKED 6144  // floats of a tile's windows that are copied side by side: they stay in the first cache

// Whether the copies of windows at the image's edges cost less than they save: where they are long runs that several
// panels use, or windows so small that what surrounds the products of a tap is most of its time.
INLINE int is_worth_packing(const Conv *c, int32_t window) {
  const int fits = window * MR <= PACKED, contiguous = c->dw == 1 && c->x_stride == c->ci;
  return fits && contiguous && ((c->kw * c->ci >= 48 && c->co > 2 * NR) || c->ci == 1);
}

// Copies or clears `count` floats, up to 3 more are written.
INLINE float *copy_run(float *to, const float *from, int32_t count) {
  for (int32_t i = 0; i < count; i += 4) v4f_store(to + i, v4f_load(from + i));
  return to + count;
}

INLINE float *clear_run(float *to, int32_t count) {
  for (int32_t i = 0; i < count; i += 4) v4f_store(to + i, v4f_splat(0.0f));
  return to + count;
}

// The windows of `count` rows side by side, zeros for what lies outside the image: each is one run of the depth then.
// Rows past `count` repeat the last one. Needs: MR windows fit PACKED floats.
static __attribute__((noinline, unused)) void pack_windows(float *to, const float *a[MR], const Conv *c, Place p,
                                                           int32_t count, int32_t group) {
  const int32_t run = c->dw == 1 && c->x_stride == c->ci ? c->kw : 1;  // taps that are one run of memory
  for (int32_t r = 0; r < MR; r++) {
    if (r >= count) {
      a[r] = a[r - 1];
      continue;
    }
    a[r] = to;
    const float *image = c->x + p.image * c->ih * c->iw * c->x_stride + group * c->ci;
    int32_t iy = p.oy * c->sh - c->pad_top;
    const int32_t ix = p.ox * c->sw - c->pad_left;
    for (int32_t ky = 0; ky < c->kh; ky++, iy += c->dh) {
      if ((uint32_t)iy >= (uint32_t)c->ih) {
        to = clear_run(to, c->kw * c->ci);
        continue;
      }
      const float *row = image + iy * c->iw * c->x_stride;
      for (int32_t kx = 0, x = ix; kx < c->kw; kx += run, x += c->dw) {
        const int32_t left = x < 0 ? -x : 0, inside = c->iw - x < run ? c->iw - x : run;
        if (left < inside) {
          to = clear_run(to, left * c->ci);
          to = copy_run(to, row + (x + left) * c->x_stride, (inside - left) * c->ci);
          to = clear_run(to, (run - inside) * c->ci);
        } else {
          to = clear_run(to, run * c->ci);
        }
      }
    }
    step_place(c, &p, 1);
  }
}
#endif

// The tile at one panel of columns; `a` are its rows where there is one tap, or where windows of `depth` are packed.
INLINE void run_panel(const Conv *c, const int one_tap, int32_t depth, const Place *place, const float *corner,
                      const float *const a[MR], int32_t tile, int32_t group, int32_t panel, Columns panels) {
  const int32_t pixel = tile * MR, count = c->pixels - pixel < MR ? c->pixels - pixel : MR;
  const int32_t channel = group * c->co + panel * NR;
  v4f acc[MR][NV];
  const Columns w = start_tile(acc, panels);
  if (one_tap || depth) {
    multiply(acc, a, w, one_tap ? c->ci : depth);
  } else if (corner) {
    add_inside(acc, c, corner + group * c->ci, w);
  } else {
    Rows rows;
    find_rows(&rows, c, *place, count);
    add_taps(acc, c, &rows, group, w);
  }
  const Target to = {c->y + pixel * c->y_stride + channel, c->y_stride, pixel, 1};
  store_tile(acc, &c->e, &to, count, channel, c->co - panel * NR);
}
