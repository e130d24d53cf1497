// The part of a sliding window that lies inside an image.
#pragma once

#include "simd.h"

// A window over [n, ih, iw, c]: every size in pixels.
typedef struct {
  int32_t ih, iw, c, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left;
} Window;

// The window of one output pixel: its corner (iy, ix) in `image`, and the taps [top, bottom) x [left, right) inside.
typedef struct {
  int32_t image, iy, ix, top, bottom, left, right;
} Taps;

// Both ask for a division only where taps are dilated: it would be the dearest part of a small window.
INLINE int32_t first_tap(int32_t at, int32_t dilation) {
  if (at >= 0) return 0;
  return dilation == 1 ? -at : (dilation - 1 - at) / dilation;
}

INLINE int32_t end_tap(int32_t at, int32_t size, int32_t window, int32_t dilation) {
  const int32_t end = dilation == 1 ? size - at : (size - at + dilation - 1) / dilation;
  return end < window ? end : window;
}

INLINE Taps find_taps(const Window *w, int32_t pixel) {
  const int32_t row = pixel / w->ow, image = row / w->oh;
  const int32_t iy = (row - image * w->oh) * w->sh - w->pad_top, ix = (pixel - row * w->ow) * w->sw - w->pad_left;
  return (Taps){image,
                iy,
                ix,
                first_tap(iy, w->dh),
                end_tap(iy, w->ih, w->kh, w->dh),
                first_tap(ix, w->dw),
                end_tap(ix, w->iw, w->kw, w->dw)};
}

// Whether each output pixel is one tap, on the input's pixel at the same place. Equal sizes alone do not say so: a
// stride and padding may keep them.
INLINE int keeps_pixels(const Window *w) {
  return w->kh * w->kw * w->sh * w->sw == 1 && w->oh == w->ih && w->ow == w->iw && !w->pad_top && !w->pad_left;
}

INLINE int32_t count_taps(const Taps *t) { return (t->bottom - t->top) * (t->right - t->left); }

// Element index of the leftmost tap of a window row, channel 0.
INLINE int32_t tap_row(const Window *w, const Taps *t, int32_t ky) {
  return ((t->image * w->ih + t->iy + ky * w->dh) * w->iw + t->ix + t->left * w->dw) * w->c;
}
