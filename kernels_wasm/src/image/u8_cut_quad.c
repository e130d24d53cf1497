// Cuts a quadrilateral out of a picture: a projective map, bicubic, as OpenCV 5's warpPerspective with INTER_CUBIC and
// BORDER_REPLICATE makes bytes of bytes (modules/imgproc/src/warp_kernels.simd.hpp; a = -0.75).
//
//   picture  the red byte of pixel (0, 0), laid out as u8_picture_to_f32.c says     read
//   y        [oh, ow, 3]  RGB                                                       written
//
// Output pixel (ox, oy) shows the picture at ((ax*ox + ay*oy + a0) / d, (bx*ox + by*oy + b0) / d), d = wx*ox + wy*oy + 1,
// where whole numbers are the centres of pixels.
// Needs: d > 0 for all output pixels; y does not overlap the picture, which is not empty.
// Units: output rows.
#include "simd.h"

#define A -0.75f

static void weights(float x, float w[4]) {
  const float y = 1.0f - x;
  w[0] = ((A * (x + 1.0f) - 5.0f * A) * (x + 1.0f) + 8.0f * A) * (x + 1.0f) - 4.0f * A;
  w[1] = ((A + 2.0f) * x - (A + 3.0f)) * x * x + 1.0f;
  w[2] = ((A + 2.0f) * y - (A + 3.0f)) * y * y + 1.0f;
  w[3] = 1.0f - w[0] - w[1] - w[2];
}

void u8_cut_quad(const uint8_t *restrict picture, uint8_t *restrict y, int32_t width, int32_t height, int32_t row_bytes,
                 int32_t pixel_bytes, int32_t channel_bytes, int32_t ow, float ax, float ay, float a0, float bx, float by,
                 float b0, float wx, float wy, int32_t begin, int32_t end) {
  uint8_t *out = y + begin * ow * 3;
  for (int32_t oy = begin; oy < end; oy++) {
    for (int32_t ox = 0; ox < ow; ox++, out += 3) {
      const double column = ox, row = oy, d = 1.0 / (wx * column + wy * row + 1.0);
      const double at_x = (ax * column + ay * row + a0) * d, at_y = (bx * column + by * row + b0) * d;
      // Clamped first: far outside, one more would overflow.
      const v4f at = v4f_clamp((v4f){(float)at_x, (float)at_y, 0.0f, 0.0f}, v4f_splat(-4.0f), v4f_splat(32767.0f));
      const v4f whole = v4f_floor(at);
      const int32_t left = (int32_t)whole[0] - 1, top = (int32_t)whole[1] - 1;
      float across[4], down[4];
      weights(at[0] - whole[0], across);
      weights(at[1] - whole[1], down);
      v4f sum = v4f_splat(0.0f);
      for (int32_t j = 0; j < 4; j++) {
        const uint8_t *line = picture + i32_clamp(top + j, 0, height - 1) * row_bytes;
        v4f along = v4f_splat(0.0f);
        for (int32_t i = 0; i < 4; i++) {
          const uint8_t *p = line + i32_clamp(left + i, 0, width - 1) * pixel_bytes;
          along += (v4f){p[0], p[channel_bytes], p[2 * channel_bytes], 0.0f} * v4f_splat(across[i]);
        }
        sum += along * v4f_splat(down[j]);
      }
      const v4i bytes = v4i_from_f32(v4f_round_even(v4f_clamp(sum, v4f_splat(0.0f), v4f_splat(255.0f))));
      for (int32_t c = 0; c < 3; c++) out[c] = (uint8_t)bytes[c];
    }
  }
}
