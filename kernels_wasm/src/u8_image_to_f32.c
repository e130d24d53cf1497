// Prepares an image for a model: crop, rotation, scale and letterbox in one affine map, bilinear, normalised.
//
//   image  [height, row_bytes]  RGBA8, alpha ignored        read
//   y      [oh, ow, 3]          RGB float32 = offset + scale * sample    written
//
// The centre of output pixel (ox, oy) samples the source at (ax*ox + ay*oy + a0, bx*ox + by*oy + b0),
// where whole numbers are the centres of source pixels.
//   border  0: outside the image lies black (0 before scale and offset); 1: the edge is repeated
// Units: output rows. Reads nothing outside image.
#include "simd.h"

#define BLACK 0

INLINE v4f texel(const uint8_t *image, int32_t row_bytes, int32_t x, int32_t y) {
  const uint8_t *p = image + y * row_bytes + 4 * x;
  return (v4f){p[0], p[1], p[2], 0.0f};
}

INLINE v4f texel_or_border(const uint8_t *image, int32_t width, int32_t height, int32_t row_bytes, int32_t x, int32_t y,
                           int32_t border) {
  if (border == BLACK && (x < 0 || y < 0 || x >= width || y >= height)) return v4f_splat(0.0f);
  return texel(image, row_bytes, i32_clamp(x, 0, width - 1), i32_clamp(y, 0, height - 1));
}

void u8_image_to_f32(const uint8_t *restrict image, float *restrict y, int32_t width, int32_t height,
                     int32_t row_bytes, int32_t ow, int32_t border, float ax, float ay, float a0, float bx, float by,
                     float b0, float scale, float offset, int32_t begin, int32_t end) {
  for (int32_t oy = begin; oy < end; oy++) {
    float *out = y + oy * ow * 3;
    for (int32_t ox = 0; ox < ow; ox++, out += 3) {
      const float sx = ax * (float)ox + ay * (float)oy + a0, sy = bx * (float)ox + by * (float)oy + b0;
      const float fx = __builtin_floorf(sx), fy = __builtin_floorf(sy);
      const int32_t x0 = i32_from_f32(fx), y0 = i32_from_f32(fy);
      const v4f wx = v4f_splat(sx - fx), wy = v4f_splat(sy - fy);
      v4f t00, t01, t10, t11;
      if (LIKELY(x0 >= 0 && y0 >= 0 && x0 < width - 1 && y0 < height - 1)) {
        t00 = texel(image, row_bytes, x0, y0), t01 = texel(image, row_bytes, x0 + 1, y0);
        t10 = texel(image, row_bytes, x0, y0 + 1), t11 = texel(image, row_bytes, x0 + 1, y0 + 1);
      } else {
        const int32_t xn = i32_clamp(x0, -2, width), yn = i32_clamp(y0, -2, height);
        t00 = texel_or_border(image, width, height, row_bytes, xn, yn, border);
        t01 = texel_or_border(image, width, height, row_bytes, xn + 1, yn, border);
        t10 = texel_or_border(image, width, height, row_bytes, xn, yn + 1, border);
        t11 = texel_or_border(image, width, height, row_bytes, xn + 1, yn + 1, border);
      }
      const v4f top = t00 + wx * (t01 - t00), bottom = t10 + wx * (t11 - t10);
      const v4f value = v4f_splat(offset) + v4f_splat(scale) * (top + wy * (bottom - top));
      out[0] = value[0];
      out[1] = value[1];
      out[2] = value[2];
    }
  }
}
