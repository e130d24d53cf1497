// Prepares a picture for a model: crop, rotation, scale and letterbox in one affine map, bilinear, normalised.
//
//   picture  the red byte of pixel (0, 0)             read
//   y        [oh, ow, 3]  RGB float32 = offset + scale * sample    written
//
// Pixel (column, row) has its red, green and blue at picture + row*row_bytes + column*pixel_bytes + {0, 1, 2}*channel_bytes.
// Any of the three may be negative or 0: RGBA, RGB, BGR, grey (channel_bytes 0), planes, pictures that are mirrored.
// The centre of output pixel (ox, oy) samples the source at (ax*ox + ay*oy + a0, bx*ox + by*oy + b0),
// where whole numbers are the centres of source pixels.
//   border    BORDER_BLACK: outside the picture lies black (0 before scale and offset); BORDER_REPEAT: the edge goes on
//   sampling  SAMPLING_EXACT; SAMPLING_FIXED: positions to 1/32 pixel and samples to whole numbers, as OpenCV's
//             warpPerspective and remap (imgwarp.cpp: INTER_BITS, FixedPtCast) make of bytes
//   pairs     not 0: so many pairs of rows lie there, the two that an output row samples for each one from `before` on;
//             those outside have the first or last pair. A pair begins at floor(y), within 0 .. height - 2.
//             Then bx is 0 and height at least 2.
// The first pixels of a row need not be there if no output pixel samples them: then `picture` lies as far before the
// others as if they were.
// Needs: y does not overlap the picture, which is not empty. Reads up to 15 bytes behind its last byte.
// Units: output rows.
#include "simd.h"

#define STEPS 32.0f  // INTER_TAB_SIZE

typedef struct {
  const uint8_t *restrict pixels;
  int32_t width, height, row_bytes, pixel_bytes, channel_bytes, border;
#if SIMD
  int32_t first, near;  // six bytes of two neighbours lie within one vector
  v16u left, right;     // where in the vector from `first` on: a byte of each int of the two texels
#endif
} Picture;

#if SIMD
INLINE int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

// Where to find a texel's bytes; the fourth int, and all upper bytes, are 0.
INLINE v16u places(int32_t at, int32_t channel_bytes) {
  v16u found;
  for (int32_t i = 0; i < 16; i++) found[i] = i % 4 == 0 && i < 12 ? (uint8_t)(at + i / 4 * channel_bytes) : 255;
  return found;
}

// Sets where the bytes of two neighbours lie.
static void arrange(Picture *p) {
  const int32_t channels = 2 * p->channel_bytes;
  p->first = least(0, p->pixel_bytes) + least(0, channels);
  p->near = p->pixel_bytes + channels - p->first < 16;  // less than what lies below: the end above
  p->left = places(-p->first, p->channel_bytes);
  p->right = places(p->pixel_bytes - p->first, p->channel_bytes);
}
#endif

INLINE const uint8_t *address(const Picture *picture, int32_t x, int32_t y) {
  return picture->pixels + y * picture->row_bytes + x * picture->pixel_bytes;
}

static v4f texel(const Picture *picture, const uint8_t *p) {
  return (v4f){p[0], p[picture->channel_bytes], p[2 * picture->channel_bytes], 0.0f};
}

// Two neighbouring texels, 0 in the last lane.
INLINE void load_pair(const Picture *picture, const uint8_t *p, v4f pair[2]) {
#if SIMD
  if (LIKELY(picture->near)) {
    const v16u bytes = v16u_load(p + picture->first);
    pair[0] = v4f_from_i32((v4i)v16u_swizzle(bytes, picture->left));
    pair[1] = v4f_from_i32((v4i)v16u_swizzle(bytes, picture->right));
    return;
  }
#endif
  pair[0] = texel(picture, p);
  pair[1] = texel(picture, p + picture->pixel_bytes);
}

// One texel that may lie outside.
static v4f load_anywhere(const Picture *picture, int32_t x, int32_t y) {
  const int32_t outside = x < 0 || y < 0 || x >= picture->width || y >= picture->height;
  if (picture->border == BORDER_BLACK && outside) return v4f_splat(0.0f);
  x = i32_clamp(x, 0, picture->width - 1);
  y = i32_clamp(y, 0, picture->height - 1);
  return texel(picture, address(picture, x, y));
}

// The bilinear sample at `position` (x, y in the first two lanes).
INLINE v4f sample(const Picture *picture, v4f position) {
  const v4f whole = v4f_floor(position), weight = position - whole;
  const v4i at = v4i_from_f32(whole);
  const int32_t x = at[0], y = at[1];
  v4f top[2], bottom[2];
  if (LIKELY(x >= 0 && y >= 0 && x < picture->width - 1 && y < picture->height - 1)) {
    const uint8_t *p = address(picture, x, y);
    load_pair(picture, p, top);
    load_pair(picture, p + picture->row_bytes, bottom);
  } else {
    // Clamped first: far outside, one more would overflow.
    const int32_t near_x = i32_clamp(x, -2, picture->width), near_y = i32_clamp(y, -2, picture->height);
    for (int32_t i = 0; i < 2; i++) {
      top[i] = load_anywhere(picture, near_x + i, near_y);
      bottom[i] = load_anywhere(picture, near_x + i, near_y + 1);
    }
  }
  const v4f wx = __builtin_shufflevector(weight, weight, 0, 0, 0, 0);
  const v4f wy = __builtin_shufflevector(weight, weight, 1, 1, 1, 1);
  const v4f upper = v4f_madd(top[1] - top[0], wx, top[0]);
  const v4f lower = v4f_madd(bottom[1] - bottom[0], wx, bottom[0]);
  return v4f_madd(lower - upper, wy, upper);
}

// The position rounded to 1/32 pixel.
INLINE v4f to_steps(v4f position) { return v4f_round_even(position * v4f_splat(STEPS)) * v4f_splat(1.0f / STEPS); }

// The upper one of the two rows that an output row samples at this position.
INLINE int32_t upper_row(v4f position, int32_t height) {
  return i32_clamp(v4i_from_f32(v4f_floor(position))[1], 0, height - 2);
}

void u8_picture_to_f32(const uint8_t *restrict picture, float *restrict y, int32_t width, int32_t height,
                       int32_t row_bytes, int32_t pixel_bytes, int32_t channel_bytes, int32_t ow, int32_t border,
                       int32_t sampling, int32_t pairs, int32_t before, float ax, float ay, float a0, float bx,
                       float by, float b0, float scale, float offset, int32_t begin, int32_t end) {
  Picture source = {.pixels = picture, .width = width, .height = height, .row_bytes = row_bytes,
                    .pixel_bytes = pixel_bytes, .channel_bytes = channel_bytes, .border = border};
#if SIMD
  arrange(&source);
#endif
  const int32_t fixed = sampling == SAMPLING_FIXED;
  const v4f step = {ax, bx, 0.0f, 0.0f}, factor = v4f_splat(scale), base = v4f_splat(offset);
  for (int32_t oy = begin; oy < end; oy++) {
    const v4f start = {ay * (float)oy + a0, by * (float)oy + b0, 0.0f, 0.0f};
    float *out = y + oy * ow * 3;
    if (pairs) {
      const int32_t lies = 2 * i32_clamp(oy - before, 0, pairs - 1);
      source.pixels = picture + (lies - upper_row(fixed ? to_steps(start) : start, height)) * row_bytes;
    }
    v4f column = v4f_splat(0.0f);  // counted in floats: V8 chains conversions from integers one behind the other
    for (int32_t ox = 0; ox < ow; ox++, out += 3, column += v4f_splat(1.0f)) {
      v4f position = step * column + start;
      if (fixed) position = to_steps(position);
      v4f value = sample(&source, position);
      if (fixed) value = v4f_floor(value + v4f_splat(0.5f));
      value = v4f_madd(value, factor, base);
      if (LIKELY(ox + 1 < ow)) {
        v4f_store(out, value);  // the fourth float is the next pixel's, which is still to come
      } else {
        v4f_store_first(out, value, 3);
      }
    }
  }
}
