// Stretches a picture to a model's input in planes, as OpenCV's resize with INTER_LINEAR makes bytes of bytes
// (modules/imgproc/src/resize.cpp: weights of 1/2048, halves cut off between the two passes), normalised.
//
//   picture  the first channel's byte of pixel (0, 0), laid out as u8_picture_to_f32.c says    read
//   y        [3, oh, ow]  float32: scale * sample + offset of each channel                     written
//
// The picture fills the first `used` columns; those behind them are 0.
// Needs: 0 < used <= ow; y does not overlap the picture, which is not empty.
// Units: output rows.
#include "simd.h"

#define ONE 2048.0f  // INTER_RESIZE_COEF_SCALE

// Where an output pixel reads: two neighbours and their weights.
typedef struct {
  int32_t first, second, a, b;
} Taps;

INLINE Taps taps(int32_t at, double step, int32_t size, int32_t is_column) {
  const float position = (float)((at + 0.5) * step - 0.5);
  int32_t first = (int32_t)__builtin_floorf(position);
  float weight = position - (float)first;
  if (is_column && (first < 0 || first >= size - 1)) weight = 0.0f;  // rows keep theirs, of an edge taken twice
  const int32_t a = (int32_t)__builtin_rintf((1.0f - weight) * ONE), b = (int32_t)__builtin_rintf(weight * ONE);
  return (Taps){i32_clamp(first, 0, size - 1), i32_clamp(first + 1, 0, size - 1), a, b};
}

void u8_resize_to_planes(const uint8_t *restrict picture, float *restrict y, int32_t width, int32_t height,
                         int32_t row_bytes, int32_t pixel_bytes, int32_t channel_bytes, int32_t ow, int32_t oh,
                         int32_t used, float scale0, float scale1, float scale2, float offset0, float offset1,
                         float offset2, int32_t begin, int32_t end) {
  const float scale[3] = {scale0, scale1, scale2}, offset[3] = {offset0, offset1, offset2};
  const double across = (double)width / used, down = (double)height / oh;
  for (int32_t oy = begin; oy < end; oy++) {
    const Taps row = taps(oy, down, height, 0);
    const uint8_t *above = picture + row.first * row_bytes, *below = picture + row.second * row_bytes;
    for (int32_t ox = 0; ox < ow; ox++) {
      const Taps column = taps(ox, across, width, 1);
      const int32_t left = column.first * pixel_bytes, right = column.second * pixel_bytes;
      for (int32_t c = 0; c < 3; c++) {
        const int32_t at = c * channel_bytes;
        const int32_t upper = (above[left + at] * column.a + above[right + at] * column.b) >> 4;
        const int32_t lower = (below[left + at] * column.a + below[right + at] * column.b) >> 4;
        const int32_t sample = ((upper * row.a >> 16) + (lower * row.b >> 16) + 2) >> 2;
        y[(c * oh + oy) * ow + ox] = ox < used ? (float)sample * scale[c] + offset[c] : 0.0f;
      }
    }
  }
}
