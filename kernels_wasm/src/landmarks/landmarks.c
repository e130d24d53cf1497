// MediaPipe's operators for attention on landmarks.
//
//   landmarks_to_matrix  points [count, 3], subset [subset_count] int32 -> matrix [4, 4] that maps the cut-out of
//                        width x height pixels to the box around the subset, turned upright and scaled.
//                        turn_cos, turn_sin: of the angle that the line from left to right shall get. One thread
//   transform_landmarks  points [count, depth], depth 2 or 3: x and y by the matrix, its translation times scale, the
//                        rest as it is. Units: points
//   transform_tensor     x [ih, iw, c] -> y [oh, ow, c] sampled bilinearly at matrix * (ox, oy), zero outside;
//                        half = 0.5 maps pixel centers, else 0. Units: output rows
//
// Needs: no result overlaps an input. Positions are computed in float64. x is read up to 12 bytes past its end.
// By hand: described, points take 1.5 to 1.8 times as long, sampling 1.03 to 1.64 times (wasmtime, 2026-11-28).
// Source: MediaPipe, mediapipe/util/tflite/operations, version 2; agrees with backends/reference/landmarks.py
#include "lanes.h"

void f32_landmarks_to_matrix(const float *restrict points, const int32_t *restrict subset, float *restrict matrix,
                             int32_t subset_count, int32_t left, int32_t right, int32_t width, int32_t height,
                             float scale_x, float scale_y, float turn_cos, float turn_sin) {
  const double dx = (double)points[3 * right] - points[3 * left];
  const double dy = (double)points[3 * right + 1] - points[3 * left + 1];
  const double length = __builtin_sqrt(dx * dx + dy * dy);
  const double c0 = length > 0 ? dx / length : 1.0, s0 = length > 0 ? dy / length : 0.0;
  // cosine and sine of the wanted angle minus the angle found
  const double c = turn_cos * c0 + turn_sin * s0, s = turn_sin * c0 - turn_cos * s0;
  double low_x = __builtin_inf(), low_y = low_x, high_x = -low_x, high_y = -low_x;
  for (int32_t i = 0; i < subset_count; i++) {
    const double px = points[3 * subset[i]], py = points[3 * subset[i] + 1];
    const double x = c * px - s * py, y = s * px + c * py;
    low_x = x < low_x ? x : low_x;
    low_y = y < low_y ? y : low_y;
    high_x = x > high_x ? x : high_x;
    high_y = y > high_y ? y : high_y;
  }
  const double mx = (low_x + high_x) / 2, my = (low_y + high_y) / 2;
  const double sx = scale_x * (high_x - low_x) / width, sy = scale_y * (high_y - low_y) / height;
  // The turn back is the transposed one.
  const double a = c * sx, b = s * sy, d = -s * sx, e = c * sy;
  const double rows[16] = {
      a, b, 0, c * mx + s * my - a * width / 2 - b * height / 2,
      d, e, 0, c * my - s * mx - d * width / 2 - e * height / 2,
      0, 0, 1, 0,
      0, 0, 0, 1,
  };
  for (int32_t i = 0; i < 16; i++) matrix[i] = (float)rows[i];
}

void f32_transform_landmarks(const float *restrict points, const float *restrict matrix, float *restrict y, int32_t depth,
                             float scale, int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end; i++) {
    const float *p = points + i * depth;
    float *to = y + i * depth;
    to[0] = (float)((double)p[0] * matrix[0] + (double)p[1] * matrix[1] + (double)matrix[3] * scale);
    to[1] = (float)((double)p[0] * matrix[4] + (double)p[1] * matrix[5] + (double)matrix[7] * scale);
    if (depth == 3) to[2] = p[2];
  }
}

// One pixel: four neighbours with their weights, or zero.
static void sample(const float *p, const float *q, int32_t near, int32_t far, float wx, float wy, float *to, int32_t c) {
  const float weights[4] = {(1 - wx) * (1 - wy), wx * (1 - wy), (1 - wx) * wy, wx * wy};
  for (int32_t i = 0; i < c; i += 4) {
    v4f v = v4f_load(p + near + i) * weights[0] + v4f_load(p + far + i) * weights[1];
    v += v4f_load(q + near + i) * weights[2] + v4f_load(q + far + i) * weights[3];
    v4f_store_lanes(to + i, v, c - i);
  }
}

void f32_transform_tensor_bilinear_nhwc(const float *restrict x, const float *restrict matrix, float *restrict y,
                                        int32_t ih, int32_t iw, int32_t c, int32_t oh, int32_t ow, float half,
                                        int32_t begin, int32_t end) {
  (void)oh;
  for (int32_t oy = begin; oy < end; oy++) {
    for (int32_t ox = 0; ox < ow; ox++) {
      const double px = ox + (double)half, py = oy + (double)half;
      const double sx = matrix[0] * px + matrix[1] * py + matrix[3] - half;
      const double sy = matrix[4] * px + matrix[5] * py + matrix[7] - half;
      float *to = y + (oy * ow + ox) * c;
      if (!(sx >= 0 && sx <= iw - 1 && sy >= 0 && sy <= ih - 1)) {
        for (int32_t i = 0; i < c; i++) to[i] = 0.0f;
        continue;
      }
      const int32_t left = (int32_t)sx, top = (int32_t)sy;
      const int32_t right = left + 1 < iw ? left + 1 : left, bottom = top + 1 < ih ? top + 1 : top;
      const float *rows = x + top * iw * c, *below = x + bottom * iw * c;
      sample(rows, below, left * c, right * c, (float)(sx - left), (float)(sy - top), to, c);
    }
  }
}
