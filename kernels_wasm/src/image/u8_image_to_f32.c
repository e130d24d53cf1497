// Prepares an image for a model: crop, rotation, scale and letterbox in one affine map, bilinear, normalised.
//
//   image  [height, row_bytes]  RGBA8, alpha ignored        read
//   y      [oh, ow, 3]          RGB float32 = offset + scale * sample    written
//
// The centre of output pixel (ox, oy) samples the source at (ax*ox + ay*oy + a0, bx*ox + by*oy + b0),
// where whole numbers are the centres of source pixels.
//   border  BORDER_BLACK: outside the image lies black (0 before scale and offset); BORDER_REPEAT: the edge goes on
// Needs: y does not overlap image, which is not empty. Reads nothing outside it.
// Units: output rows.
#include "simd.h"

typedef struct {
  const uint8_t *restrict pixels;
  int32_t width, height, row_bytes, border;
} Image;

// Two neighbouring texels, alpha in the last lane.
INLINE void load_pair(const uint8_t *p, v4f pair[2]) {
  const v8s wide = v8s_widen_u(v8ub_load(p));
  pair[0] = v4f_from_i32(v4i_widen_low(wide));
  pair[1] = v4f_from_i32(v4i_widen_high(wide));
}

// One texel that may lie outside.
static v4f load_anywhere(const Image *image, int32_t x, int32_t y) {
  if (image->border == BORDER_BLACK && (x < 0 || y < 0 || x >= image->width || y >= image->height)) return v4f_splat(0.0f);
  x = i32_clamp(x, 0, image->width - 1);
  y = i32_clamp(y, 0, image->height - 1);
  const uint8_t *p = image->pixels + y * image->row_bytes + 4 * x;
  return (v4f){p[0], p[1], p[2], 0.0f};
}

// The bilinear sample at `position` (x, y in the first two lanes).
INLINE v4f sample(const Image *image, v4f position) {
  const v4f whole = v4f_floor(position), weight = position - whole;
  const v4i at = v4i_from_f32(whole);
  const int32_t x = at[0], y = at[1];
  v4f top[2], bottom[2];
  if (LIKELY(x >= 0 && y >= 0 && x < image->width - 1 && y < image->height - 1)) {
    const uint8_t *p = image->pixels + y * image->row_bytes + 4 * x;
    load_pair(p, top);
    load_pair(p + image->row_bytes, bottom);
  } else {
    // Clamped first: far outside, one more would overflow.
    const int32_t near_x = i32_clamp(x, -2, image->width), near_y = i32_clamp(y, -2, image->height);
    for (int32_t i = 0; i < 2; i++) {
      top[i] = load_anywhere(image, near_x + i, near_y);
      bottom[i] = load_anywhere(image, near_x + i, near_y + 1);
    }
  }
  const v4f wx = __builtin_shufflevector(weight, weight, 0, 0, 0, 0);
  const v4f wy = __builtin_shufflevector(weight, weight, 1, 1, 1, 1);
  const v4f upper = v4f_madd(top[1] - top[0], wx, top[0]);
  const v4f lower = v4f_madd(bottom[1] - bottom[0], wx, bottom[0]);
  return v4f_madd(lower - upper, wy, upper);
}

void u8_image_to_f32(const uint8_t *restrict image, float *restrict y, int32_t width, int32_t height,
                     int32_t row_bytes, int32_t ow, int32_t border, float ax, float ay, float a0, float bx, float by,
                     float b0, float scale, float offset, int32_t begin, int32_t end) {
  const Image source = {image, width, height, row_bytes, border};
  const v4f step = {ax, bx, 0.0f, 0.0f}, factor = v4f_splat(scale), base = v4f_splat(offset);
  for (int32_t oy = begin; oy < end; oy++) {
    const v4f start = {ay * (float)oy + a0, by * (float)oy + b0, 0.0f, 0.0f};
    float *out = y + oy * ow * 3;
    v4f column = v4f_splat(0.0f);  // counted in floats: V8 chains conversions from integers one behind the other
    for (int32_t ox = 0; ox < ow; ox++, out += 3, column += v4f_splat(1.0f)) {
      const v4f value = v4f_madd(sample(&source, step * column + start), factor, base);
      if (LIKELY(ox + 1 < ow)) {
        v4f_store(out, value);  // the fourth float is the next pixel's, which is still to come
      } else {
        v4f_store_first(out, value, 3);
      }
    }
  }
}
