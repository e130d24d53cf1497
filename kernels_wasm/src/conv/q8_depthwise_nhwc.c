// Quantised depthwise convolution, NHWC, any window, one output for each channel.
//
//   x  [n, ih, iw, c]  bytes, read up to 7 bytes past the end      w  panels of q8_pack_weights with ci = 1
//   y  [n, oh, ow, c]  bytes, written                              pad  [c + 8] bytes of x's stored zero, read
//   x_flip, y_flip     0x80 for int8, 0 for uint8                  lo, hi, y_zero  as in requantize.h
//
// Needs: kh * kw <= Q8_MAX_TAPS; x and y do not overlap. Units: output rows, n * oh.
#include "q8_window_quads.h"

// What belongs to one pixel: where its taps lie, with enough of them behind the last for a group.
typedef struct {
  const uint8_t *taps[Q8_MAX_TAPS + 3];
  int32_t count, channels, flip, byte_flip;
} Window;

// sums += the taps of eight channels from c on, two at a time.
INLINE void add_pairs(v4i sums[2], const Window *window, int32_t c, const uint8_t *w) {
  NO_UNROLL for (int32_t t = 0; t < window->count; t += 2, w += 4 * COLUMNS) {
    const v8s a = load_shorts(window->taps[t] + c, window->flip), b = load_shorts(window->taps[t + 1] + c, window->flip);
    sums[0] += v4i_dot_i16(v8s_pairs_low(a, b), v8s_load(w));
    sums[1] += v4i_dot_i16(v8s_pairs_high(a, b), v8s_load(w + 2 * COLUMNS));
  }
}

// The same of bytes, four at a time.
INLINE void add_quads(v4i sums[2], const Window *window, int32_t c, const uint8_t *panel) {
#if WINDOW_BYTES
  NO_UNROLL for (int32_t t = 0; t < window->count; t += 4, panel += 4 * COLUMNS) {
    const uint8_t *const *taps = window->taps + t;
    const Quads x = quads_of(v16u_load_half(taps[0] + c), v16u_load_half(taps[1] + c), v16u_load_half(taps[2] + c),
                             v16u_load_half(taps[3] + c), window->byte_flip);
    for (int half = 0; half < 2; half++) sums[half] = add_group(sums[half], &x, panel, 0, half);
  }
#else
  (void)sums, (void)window, (void)c, (void)panel;  // nobody calls it
#endif
}

// All channels of one pixel, eight at a time.
INLINE void one_pixel(const Window *window, const uint8_t *panel, uint8_t *y, const Stored *stored) {
  const int32_t bytes = (window->count + 1) / 2 * 4 * COLUMNS + HEAD;
  for (int32_t c = 0; c < window->channels; c += COLUMNS, panel += bytes) {
    v4i sums[2] = {v4i_load(panel), v4i_load(panel + 16)};
    if (panel_has_bytes(panel)) {
      add_quads(sums, window, c, panel);
    } else {
      add_pairs(sums, window, c, panel + HEAD);
    }
    const v4i low = requantize(sums[0], v4f_load(panel + 32), stored);
    const v4i high = requantize(sums[1], v4f_load(panel + 48), stored);
    store_bytes(y + c, stored_bytes(low, high, stored), window->channels - c);
  }
}

void q8_depthwise_nhwc(const uint8_t *restrict x, const uint8_t *restrict w, uint8_t *restrict y,
                       const uint8_t *restrict pad, int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow,
                       int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,
                       int32_t pad_left, int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo, float hi,
                       int32_t begin, int32_t end) {
  const Stored stored = stored_as(lo, hi, y_zero, y_flip);
  Window window;
  window.count = kh * kw;
  window.channels = c;
  window.flip = x_flip;
  window.byte_flip = form_of(x_flip, 0, 0).flip;
  for (int32_t i = 0; i < 3; i++) window.taps[window.count + i] = pad;  // those behind the last have zero weights
  for (int32_t row = begin; row < end; row++) {
    const int32_t image = row / oh, top = row % oh * sh - pad_top;
    for (int32_t ox = 0; ox < ow; ox++) {
      const int32_t left = ox * sw - pad_left;
      const uint8_t **tap = window.taps;
      for (int32_t ky = 0, iy = top; ky < kh; ky++, iy += dh) {
        const uint8_t *line = iy >= 0 && iy < ih ? x + (image * ih + iy) * iw * c : 0;
        for (int32_t kx = 0, ix = left; kx < kw; kx++, ix += dw) {
          *tap++ = line && ix >= 0 && ix < iw ? line + ix * c : pad;
        }
      }
      one_pixel(&window, w, y + (row * ow + ox) * c, &stored);
    }
  }
}
