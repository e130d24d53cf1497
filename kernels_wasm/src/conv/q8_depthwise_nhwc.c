// Quantised depthwise convolution, NHWC, any window, one output for each channel.
//
//   x  [n, ih, iw, c]  bytes, read up to 7 bytes past the end      w  panels of q8_pack_weights with ci = 1
//   y  [n, oh, ow, c]  bytes, written                              pad  [c + 8] bytes of x's stored zero, read
//   x_flip, y_flip     0x80 for int8, 0 for uint8                  lo, hi, y_zero  as in requantize.h
//
// Needs: kh * kw <= Q8_MAX_TAPS; x and y do not overlap. Units: output rows, n * oh.
#include "dots.h"
#include "requantize.h"

enum { COLUMNS = Q8_COLUMNS, HEAD = Q8_HEAD_BYTES / 2 };

// All channels of one pixel, eight at a time; one instruction multiplies and adds two taps.
INLINE void one_pixel(const uint8_t *const *taps, const int32_t pairs, int32_t channels, const int16_t *panel,
                      const int32_t x_flip, uint8_t *y, const Stored *stored) {
  for (int32_t c = 0; c < channels; c += COLUMNS, panel += HEAD + pairs * 2 * COLUMNS) {
    v4i low = v4i_load(panel), high = v4i_load(panel + 8);
    const int16_t *w = panel + HEAD;
    NO_UNROLL for (int32_t p = 0; p < pairs; p++, w += 2 * COLUMNS) {
      const v8s a = load_shorts(taps[2 * p] + c, x_flip), b = load_shorts(taps[2 * p + 1] + c, x_flip);
      low += v4i_dot_i16(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11), v8s_load(w));
      high += v4i_dot_i16(__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15), v8s_load(w + COLUMNS));
    }
    low = requantize(low, v4f_load(panel + 16), stored);
    high = requantize(high, v4f_load(panel + 24), stored);
    store_bytes(y + c, stored_bytes(low, high, stored), channels - c);
  }
}

void q8_depthwise_nhwc(const uint8_t *restrict x, const int16_t *restrict w, uint8_t *restrict y,
                       const uint8_t *restrict pad, int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow,
                       int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,
                       int32_t pad_left, int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo, float hi,
                       int32_t begin, int32_t end) {
  const Stored stored = stored_as(lo, hi, y_zero, y_flip);
  const int32_t count = kh * kw, pairs = (count + 1) / 2;
  const uint8_t *taps[Q8_MAX_TAPS + 1];
  taps[count] = pad;  // an odd last tap has zero weights
  for (int32_t row = begin; row < end; row++) {
    const int32_t image = row / oh, top = row % oh * sh - pad_top;
    for (int32_t ox = 0; ox < ow; ox++) {
      const int32_t left = ox * sw - pad_left;
      const uint8_t **tap = taps;
      for (int32_t ky = 0, iy = top; ky < kh; ky++, iy += dh) {
        const uint8_t *line = iy >= 0 && iy < ih ? x + (image * ih + iy) * iw * c : 0;
        for (int32_t kx = 0, ix = left; kx < kw; kx++, ix += dw) {
          *tap++ = line && ix >= 0 && ix < iw ? line + ix * c : pad;
        }
      }
      uint8_t *to = y + (row * ow + ox) * c;
      one_pixel(taps, pairs, c, w, x_flip, to, &stored);
    }
  }
}
