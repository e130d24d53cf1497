// Boxes by their corners: top, left, bottom, right.
#pragma once

INLINE float smaller(float a, float b) { return a < b ? a : b; }
INLINE float larger(float a, float b) { return a > b ? a : b; }

// The box of two opposite corners in any order.
INLINE void sort_corners(const float *box, float *sorted) {
  for (int32_t axis = 0; axis < 2; axis++) {
    sorted[axis] = smaller(box[axis], box[axis + 2]);
    sorted[axis + 2] = larger(box[axis], box[axis + 2]);
  }
}

// 0 where a box has no area.
INLINE float intersection_over_union(const float *a, const float *b) {
  const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
  if (area_a <= 0.0f || area_b <= 0.0f) return 0.0f;
  const float h = larger(smaller(a[2], b[2]) - larger(a[0], b[0]), 0.0f);
  const float w = larger(smaller(a[3], b[3]) - larger(a[1], b[1]), 0.0f);
  return h * w / (area_a + area_b - h * w);
}
