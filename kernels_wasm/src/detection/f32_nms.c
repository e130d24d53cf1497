// Non-maximum suppression of boxes, hard or soft, as NON_MAX_SUPPRESSION_V5 has it: once for each list of their scores.
//
//   boxes      [n, 4]          two opposite corners (y, x), any order     read
//   scores     [units, n]      read
//   work       [units, 2, n]   scores as they sink, and how many results each was held against; scratch
//   positions  [units, limit]  int32: of the boxes that are kept, best first; zero behind the last      written
//   kept       [units, limit]  their scores; zero behind the last         written
//   count      [units]         int32: how many there are                  written
//   sigma      of soft suppression; 0: boxes are only dropped
// Needs: nothing overlaps.
//
// Units: lists. Boxes of at least `overlap` of intersection over union with a kept one are dropped; of equal scores the
// first box wins.
// Source: tensorflow v2.18.0, lite/kernels/internal/reference/non_max_suppression.h
#include "math.h"

#include "boxes.h"

#define GONE (-INFINITE)

// Of one list; how many boxes are kept.
static int32_t suppressed(const float *restrict boxes, const float *restrict scores, float *restrict work,
                          int32_t *restrict positions, float *restrict kept, int32_t n, int32_t limit, float overlap,
                          float least, float sigma) {
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
    float own[4], other[4];
    sort_corners(boxes + 4 * best, own);
    for (int32_t j = found - 1; j >= held[best]; j--) {
      sort_corners(boxes + 4 * positions[j], other);
      const float both = intersection_over_union(own, other);
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
  for (int32_t i = found; i < limit; i++) positions[i] = 0, kept[i] = 0.0f;
  return found;
}

void f32_nms(const float *restrict boxes, const float *restrict scores, float *restrict work, int32_t *restrict positions,
             float *restrict kept, int32_t *restrict count, int32_t n, int32_t limit, float overlap, float least,
             float sigma, int32_t begin, int32_t end) {
  for (int32_t list = begin; list < end; list++) {
    const int64_t first = (int64_t)list * n, to = (int64_t)list * limit;
    count[list] = suppressed(boxes, scores + first, work + 2 * first, positions + to, kept + to, n, limit, overlap, least, sigma);
  }
}
