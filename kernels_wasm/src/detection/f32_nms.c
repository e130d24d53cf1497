// Non-maximum suppression of one list of boxes, hard or soft, as NON_MAX_SUPPRESSION_V5 has it.
//
//   boxes      [n, 4]   two opposite corners (y, x), any order     read
//   scores     [n]      read
//   work       [2, n]   scores as they sink, and how many results each was held against; scratch
//   positions  [limit]  int32: of the boxes that are kept, best first; zero behind the last      written
//   kept       [limit]  their scores; zero behind the last         written
//   count      [1]      int32: how many there are                  written
//   sigma      of soft suppression; 0: boxes are only dropped
// Needs: nothing overlaps.
//
// Units: none, one thread does all. Boxes of at least `overlap` of intersection over union with a kept one are dropped;
// of equal scores the first box wins.
// Source: tensorflow v2.18.0, lite/kernels/internal/reference/non_max_suppression.h
#include "math.h"

#define GONE (-INFINITE)

static float smaller(float a, float b) { return a < b ? a : b; }
static float larger(float a, float b) { return a > b ? a : b; }

static float intersection_over_union(const float *a, const float *b) {
  const float top_a = smaller(a[0], a[2]), left_a = smaller(a[1], a[3]);
  const float bottom_a = larger(a[0], a[2]), right_a = larger(a[1], a[3]);
  const float top_b = smaller(b[0], b[2]), left_b = smaller(b[1], b[3]);
  const float bottom_b = larger(b[0], b[2]), right_b = larger(b[1], b[3]);
  const float area_a = (bottom_a - top_a) * (right_a - left_a), area_b = (bottom_b - top_b) * (right_b - left_b);
  if (area_a <= 0.0f || area_b <= 0.0f) return 0.0f;
  const float h = larger(smaller(bottom_a, bottom_b) - larger(top_a, top_b), 0.0f);
  const float w = larger(smaller(right_a, right_b) - larger(left_a, left_b), 0.0f);
  return h * w / (area_a + area_b - h * w);
}

void f32_nms(const float *restrict boxes, const float *restrict scores, float *restrict work, int32_t *restrict positions,
             float *restrict kept, int32_t *restrict count, int32_t n, int32_t limit, float overlap, float least,
             float sigma) {
  int32_t *held = (int32_t *)(work + n), found = 0;
  for (int32_t i = 0; i < n; i++) work[i] = scores[i] > least ? scores[i] : GONE, held[i] = 0;
  while (found < limit) {
    int32_t best = -1;
    for (int32_t i = 0; i < n; i++) {
      if (work[i] > GONE && (best < 0 || work[i] > work[best])) best = i;
    }
    if (best < 0) break;
    float score = work[best];
    int32_t dropped = 0;
    for (int32_t j = found - 1; j >= held[best]; j--) {
      const float both = intersection_over_union(boxes + 4 * best, boxes + 4 * positions[j]);
      if (both >= overlap) {
        dropped = 1;
        break;
      }
      if (sigma > 0.0f) score *= v4f_exp(v4f_splat(-0.5f / sigma * both * both))[0];
      if (score <= least) break;
    }
    held[best] = found;
    if (!dropped && score == work[best]) {
      positions[found] = best;
      kept[found] = score;
      found++;
      work[best] = GONE;
    } else {
      work[best] = !dropped && score > least ? score : GONE;
    }
  }
  count[0] = found;
  for (int32_t i = found; i < limit; i++) positions[i] = 0, kept[i] = 0.0f;
}
