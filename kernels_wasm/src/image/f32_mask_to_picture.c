// Lays a model's mask over the picture that it was cropped from: an affine map, bilinear, 0 outside of the mask.
//
//   mask  [mh, mw]  float32   read
//   y     [oh, ow]  float32   written
//
// Picture pixel (ox, oy) samples the mask at (ax*ox + ay*oy + a0, bx*ox + by*oy + b0), where whole numbers are the
// centres of the mask's pixels.
// Needs: mw, mh > 0; y does not overlap the mask.
// Units: output rows.
#include "simd.h"

static float pixel(const float *mask, int32_t mw, int32_t mh, int32_t x, int32_t y) {
  return x < 0 || y < 0 || x >= mw || y >= mh ? 0.0f : mask[y * mw + x];
}

void f32_mask_to_picture(const float *restrict mask, float *restrict y, int32_t mw, int32_t mh, int32_t ow, float ax,
                         float ay, float a0, float bx, float by, float b0, int32_t begin, int32_t end) {
  for (int32_t oy = begin; oy < end; oy++) {
    float *out = y + oy * ow;
    for (int32_t ox = 0; ox < ow; ox++) {
      const float at_x = ax * (float)ox + ay * (float)oy + a0, at_y = bx * (float)ox + by * (float)oy + b0;
      if (!(at_x > -1.0f && at_y > -1.0f && at_x < (float)mw && at_y < (float)mh)) {
        out[ox] = 0.0f;
        continue;
      }
      const float left = __builtin_floorf(at_x), top = __builtin_floorf(at_y);
      const int32_t column = (int32_t)left, row = (int32_t)top;
      const float across = at_x - left, down = at_y - top;
      const float a = pixel(mask, mw, mh, column, row), b = pixel(mask, mw, mh, column + 1, row);
      const float c = pixel(mask, mw, mh, column, row + 1), d = pixel(mask, mw, mh, column + 1, row + 1);
      const float upper = a + (b - a) * across, lower = c + (d - c) * across;
      out[ox] = upper + (lower - upper) * down;
    }
  }
}
