// f32 depthwise convolution, NHWC, any window, stride and dilation; 8 channels of neighbouring pixels at a time,
// as many as have the same taps inside the image.
//
//   x   [n, ih, iw, x_stride]        read: a pixel's c channels lie at its start
//   w   [ceil(c/4)][4 + kh*kw*4]     f32_pack_depthwise_weights's blocks: bias, then the taps
//   y   [n, oh, ow, y_stride]        written: the first c channels of each pixel
//   Needs: y overlaps neither x nor w.  Padded taps count as zero: they are left out.
//
// Units: output rows, n * oh.
#define K 1  // not of the window, which the arguments tell
#define S 1
#define B 4
#include "depthwise_block.h"
#include "window.h"

#if SIMD
#define SCALED_FLOATS 2048  // read at a time: they stay in the first cache while their channels take turns
#define SCALED_CHANNELS 32  // whose factors lie on the stack four times

// 4 or 8 channels, from `channel` on, of neighbouring pixels: x * w + bias and the activation.
INLINE void scale_columns(const float *x, const float *w, float *y, int32_t c, int32_t pixels, const Epilogue *e,
                          int32_t channel, const int sloped, const int blocks) {
  v4f bias[2], factor[2], slope[2];
  const v4f lo = v4f_splat(e->lo), hi = v4f_splat(e->hi);
  UNROLL for (int j = 0; j < blocks; j++) {
    bias[j] = v4f_load(w + 8 * j);
    factor[j] = v4f_load(w + 8 * j + 4);
    slope[j] = sloped ? v4f_load(e->slope + channel + 4 * j) : lo;
  }
  NO_UNROLL for (; pixels > 0; pixels--, x += c, y += c) {
    UNROLL for (int j = 0; j < blocks; j++) {
      const v4f sum = v4f_madd(v4f_load(x + 4 * j), factor[j], bias[j]);
      v4f_store(y + 4 * j, sloped ? prelu(sum, slope[j]) : v4f_clamp(sum, lo, hi));
    }
  }
}

// A window of one tap: a factor and a summand a channel, as fast as memory. Needs: whole vectors of channels.
static void scale_pixels(const float *x, const float *w, float *y, int32_t c, int32_t pixels, const Epilogue *e) {
  const int32_t most = SCALED_FLOATS / c + 1;
  for (int32_t count; pixels > 0; pixels -= count, x += count * c, y += count * c) {
    count = pixels < most ? pixels : most;
    for (int32_t channel = 0; channel < c; channel += 8) {
      const int sloped = e->act == ACTIVATION_PRELU, whole = c - channel >= 8;
      const float *from = x + channel, *weights = w + 2 * channel;
      float *to = y + channel;
      if (sloped && whole) scale_columns(from, weights, to, c, count, e, channel, 1, 2);
      else if (sloped) scale_columns(from, weights, to, c, count, e, channel, 1, 1);
      else if (whole) scale_columns(from, weights, to, c, count, e, channel, 0, 2);
      else scale_columns(from, weights, to, c, count, e, channel, 0, 1);
    }
  }
}

// The same for any number of channels up to SCALED_CHANNELS: four pixels are one of four times the channels. The last
// four pixels may be computed twice. Needs: pixels >= 4
static void scale_few_channels(const float *x, const float *w, float *y, int32_t c, int32_t pixels, const Epilogue *e) {
  float weights[8 * SCALED_CHANNELS], slope[4 * SCALED_CHANNELS];
  for (int32_t i = 0; i < 4 * c; i++) {
    const int32_t channel = i % c, from = channel / 4 * 8 + channel % 4, to = i / 4 * 8 + i % 4;
    weights[to] = w[from];
    weights[to + 4] = w[from + 4];
    slope[i] = e->act == ACTIVATION_PRELU ? e->slope[channel] : 0.0f;
  }
  Epilogue all = *e;
  all.slope = slope;
  scale_pixels(x, weights, y, 4 * c, pixels / 4, &all);
  if (pixels % 4) scale_pixels(x + (pixels - 4) * c, weights, y + (pixels - 4) * c, 4 * c, 1, &all);
}

// One output row that has the pixels of its input.
INLINE void scale_row(const float *x, const float *w, float *y, int32_t c, int32_t pixels, const Epilogue *e) {
  if (c % 4) scale_few_channels(x, w, y, c, pixels, e);
  else scale_pixels(x, w, y, c, pixels, e);
  if (ends_stored(e)) activate_rows(y, 0, 1, pixels * c, e->act);
}
#endif

#define ROWS_FLOATS 6144  // of the image, under one row of results: they stay in the first cache

// Whether the pixel `steps` behind one with these taps, in its row, has the same ones.
INLINE int has_taps(const Window *w, const Taps *t, int32_t steps) {
  const int32_t first = t->ix + steps * w->sw + t->left * w->dw, last = first + (t->right - 1 - t->left) * w->dw;
  return first >= 0 && (t->left == 0 || first - w->dw < 0) && last < w->iw && (t->right == w->kw || last + w->dw >= w->iw);
}

// Channels [channel, stop) of `count` neighbours with the same taps, 8 at a time.
INLINE void run_pixels(const Depthwise *d, const Window *window, const Taps *t, int32_t pixel, int32_t channel,
                       int32_t stop, const int count) {
  const int32_t block = 4 + window->kh * window->kw * 4, step = window->sw * d->x_stride;
  float *y = d->y + pixel * d->y_stride;
  const float *first = d->w + channel / 4 * block;
  for (; channel < stop; channel += 8, first += 2 * block) {
    const int32_t second = channel + 4 < d->c ? block : 0, next = second ? 4 : 0;
    v4f low[B], high[B];
    UNROLL for (int b = 0; b < count; b++) {
      low[b] = v4f_load(first);
      high[b] = v4f_load(first + second);
    }
    for (int32_t ky = t->top; ky < t->bottom; ky++) {
      const float *p = d->x + tap_row(window, t, ky) + channel, *w = first + 4 + (ky * window->kw + t->left) * 4;
      NO_UNROLL for (int32_t kx = t->left; kx < t->right; kx++) {
        const v4f tap = v4f_load(w), other = v4f_load(w + second);
        const float *column = p;
        UNROLL for (int b = 0; b < count; b++) {
          low[b] = v4f_madd(v4f_load(column), tap, low[b]);
          PIN(low[b]);
          high[b] = v4f_madd(v4f_load(column + next), other, high[b]);
          PIN(high[b]);
          column += step;
          PIN(column);
        }
        p += window->dw * d->x_stride;
        w += 4;
      }
    }
    store_block(low, count, d, y + channel, pixel, count, channel);
    if (second) store_block(high, count, d, y + channel + 4, pixel, count, channel + 4);
  }
}

// Channels [channel, stop) of one output row.
INLINE void run_row(const Depthwise *d, const Window *window, int32_t row, int32_t channel, int32_t stop) {
  const int32_t end = (row + 1) * d->ow;
  for (int32_t pixel = row * d->ow; pixel < end;) {
    const Taps t = find_taps(window, pixel);
    if (pixel + B <= end && has_taps(window, &t, B - 1)) {
      run_pixels(d, window, &t, pixel, channel, stop, B);
      pixel += B;
    } else {
      run_pixels(d, window, &t, pixel, channel, stop, 1);
      pixel++;
    }
  }
}

void f32_depthwise_nhwc(const float *restrict x, const float *restrict w, float *restrict y, int32_t n, int32_t ih,
                        int32_t iw, int32_t c, int32_t x_stride, int32_t oh, int32_t ow, int32_t y_stride, int32_t kh,
                        int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top, int32_t pad_left,
                        const float *residual, int32_t residual_c, const float *slope, int32_t act, float lo, float hi,
                        int32_t begin, int32_t end) {
  (void)n;
  const Window window = {ih, iw, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left};
  const Epilogue e = {residual, residual_c, slope, act, lo, hi};
#if SIMD
  const int few = c % 4 == 0 || (c <= SCALED_CHANNELS && ow >= 4);
  if (few && !residual && keeps_pixels(&window) && x_stride == c && y_stride == c) {
    for (int32_t i = begin * ow * c; i < end * ow * c; i += ow * c) scale_row(x + i, w, y + i, c, ow, &e);
    return;
  }
#endif
  Depthwise d = {x,  w,        y,       ih,       iw,            c,             x_stride, oh,
                 ow, y_stride, pad_top, pad_left, iw * x_stride, ow * y_stride, e,        0,  0, 0, 0, 1.0f};
  set_ending(&d);
  const int32_t fitting = ROWS_FLOATS / (kh * iw) / 16 * 16, most = fitting < 16 ? 16 : fitting;
  for (int32_t row = begin; row < end; row++) {
    for (int32_t channel = 0; channel < c; channel += most) {
      run_row(&d, &window, row, channel, c - channel < most ? c : channel + most);
    }
    end_rows(&d, row, 1);
  }
}
