// Non-maximum suppression that averages: overlapping detections become one, weighted by their scores.
//
//   candidates  [room][width]  left, top, right, bottom, more coordinates, score     read; scores are used up
//   count       [1]              how many candidates there are, `room` at most          read
//   kept        [limit][width]   best score first, the best one's; zero behind the last  written
//   Needs: the three do not overlap.
//
// Units: none, one thread does all. Detections join the best one if their intersection over union is greater than `suppression`.
// Source: MediaPipe NonMaxSuppressionCalculator, WEIGHTED, INTERSECTION_OVER_UNION; agrees with
// backends/reference/detection.py
#include "simd.h"

#define TAKEN (-1.0f)

static float overlap(const float *a, const float *b) {
  const float w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
  const float h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
  if (w <= 0.0f || h <= 0.0f) return 0.0f;
  const float both = w * h, either = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;
  return either > 0.0f ? both / either : 0.0f;
}

static int32_t find_best(const float *candidates, int32_t n, int32_t width) {
  int32_t best = -1;
  float best_score = TAKEN;
  for (int32_t i = 0; i < n; i++) {
    const float score = candidates[i * width + width - 1];
    if (score > best_score) best = i, best_score = score;
  }
  return best;
}

void f32_weighted_nms(float *restrict candidates, const int32_t *restrict count, float *restrict kept, int32_t width,
                      int32_t room, int32_t limit, float suppression) {
  const int32_t n = *count < room ? *count : room;
  int32_t found = 0;
  for (; found < limit; found++) {
    const int32_t best = find_best(candidates, n, width);
    if (best < 0) break;
    const float *winner = candidates + best * width;
    float *out = kept + found * width, total = 0.0f;
    for (int32_t k = 0; k < width - 1; k++) out[k] = 0.0f;
    for (int32_t i = 0; i < n; i++) {
      float *other = candidates + i * width;
      const float score = other[width - 1];
      if (score == TAKEN || i == best || overlap(winner, other) <= suppression) continue;
      for (int32_t k = 0; k < width - 1; k++) out[k] += score * other[k];
      total += score;
      other[width - 1] = TAKEN;
    }
    const float score = winner[width - 1];
    total += score;
    for (int32_t k = 0; k < width - 1; k++) out[k] = total > 0.0f ? (out[k] + score * winner[k]) / total : winner[k];
    out[width - 1] = score;
    candidates[best * width + width - 1] = TAKEN;
  }
  for (int32_t i = found * width; i < limit * width; i++) kept[i] = 0.0f;
}
