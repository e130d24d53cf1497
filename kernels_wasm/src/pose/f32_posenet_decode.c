// PoseNet's decoder: heat maps and offsets to poses, and with long offsets to a mask for each pose.
//
//   heat    [h, w, 17]       logits                      points   [most, 17, 2]  y, x in image pixels   written
//   near    [h, w, 34]       offsets, all y before x     scores   [most, 17]                            written
//   middle  [h, w, 64]       from parent to child        poses    [most]         mean scores            written
//   far     [h, w, 34] or 0  for masks                   count    [1]            how many               written
//   masks   [most, h, w] or 0  written: 1 where the pixel belongs to the pose
//   heap    [h * w * 17] int32       scratch             found    [most * 52]    scratch
//
// Offsets are in image pixels, `stride` to a cell. least: the logit of `threshold`. Poses beyond the count are zero.
// Of equal candidates the first in memory wins.
// Needs: no two of these overlap.  Units: none, one thread does all.
// Source: libcoral, coral/posenet/posenet_decoder.cc; agrees with backends/reference/pose.py
#include "math.h"

enum { KEYPOINTS = 17, EDGES = 16, REFINEMENTS = 5, MASK_REFINEMENTS = 3, QUEUE = 64 };

typedef struct {
  float y, x;
} Point;
typedef struct {
  const float *heat, *near, *middle;
  int32_t h, w;
  float cell;  // cells to an image pixel
} Maps;
typedef struct {  // a pose in `found`: mean, points, scores
  float mean, points[2 * KEYPOINTS], scores[KEYPOINTS];
} Pose;
_Static_assert(sizeof(Pose) == 4 * POSE_FLOATS, "scratch holds whole poses");

static const int8_t PARENTS[EDGES] = {0, 1, 0, 2, 0, 5, 7, 5, 11, 13, 0, 6, 8, 6, 12, 14};
static const int8_t CHILDREN[EDGES] = {1, 3, 2, 4, 5, 7, 9, 11, 13, 15, 6, 8, 10, 12, 14, 16};

// NaN becomes 0, so that no position ever leaves a map.
INLINE float clamp(float v, int32_t size) {
  const float last = (float)(size - 1);
  return v > 0.0f ? (v < last ? v : last) : 0.0f;
}
static float sigmoid(float x) { return v4f_sigmoid(v4f_splat(x))[0]; }

// A channel of a map between its pixels, its values times `factor`.
static float sample(const float *map, const Maps *m, int32_t channels, int32_t channel, Point p, float factor) {
  const float cy = clamp(p.y, m->h), cx = clamp(p.x, m->w);
  const int32_t top = (int32_t)cy, left = (int32_t)cx;
  const int32_t bottom = (int32_t)__builtin_ceilf(cy), right = (int32_t)__builtin_ceilf(cx);
  const float wy = p.y - (float)top, wx = p.x - (float)left;
  const float *upper = map + top * m->w * channels + channel, *lower = map + bottom * m->w * channels + channel;
  const float a = upper[left * channels] * factor, b = upper[right * channels] * factor;
  const float c = lower[left * channels] * factor, d = lower[right * channels] * factor;
  return (1.0f - wy) * ((1.0f - wx) * a + wx * b) + wy * ((1.0f - wx) * c + wx * d);
}

// The point moved by an offset map whose y channel is `channel` and whose x channel is `apart` behind it.
static Point moved(const float *map, const Maps *m, int32_t channels, int32_t channel, int32_t apart, Point p) {
  const float dy = sample(map, m, channels, channel, p, m->cell);
  const float dx = sample(map, m, channels, channel + apart, p, m->cell);
  return (Point){clamp(p.y + dy, m->h), clamp(p.x + dx, m->w)};
}

// ---- candidates: a heap of positions in the heat map, the best on top
INLINE int is_better(const float *heat, int32_t a, int32_t b) { return heat[a] > heat[b] || (heat[a] == heat[b] && a < b); }

static void sink(int32_t *heap, int32_t size, int32_t at, const float *heat) {
  const int32_t item = heap[at];
  for (int32_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && is_better(heat, heap[child + 1], heap[child])) child++;
    if (!is_better(heat, heap[child], item)) break;
    heap[at] = heap[child];
  }
  heap[at] = item;
}

static int is_peak(const Maps *m, int32_t y, int32_t x, int32_t k) {
  const float value = m->heat[(y * m->w + x) * KEYPOINTS + k];
  for (int32_t ny = y > 0 ? y - 1 : 0; ny <= y + 1 && ny < m->h; ny++) {
    for (int32_t nx = x > 0 ? x - 1 : 0; nx <= x + 1 && nx < m->w; nx++) {
      if (m->heat[(ny * m->w + nx) * KEYPOINTS + k] > value) return 0;
    }
  }
  return 1;
}

static int32_t find_candidates(const Maps *m, float least, int32_t *heap) {
  int32_t size = 0;
  for (int32_t i = 0; i < m->h * m->w * KEYPOINTS; i++) {
    const int32_t pixel = i / KEYPOINTS;
    if (m->heat[i] >= least && is_peak(m, pixel / m->w, pixel % m->w, i % KEYPOINTS)) heap[size++] = i;
  }
  for (int32_t at = size / 2 - 1; at >= 0; at--) sink(heap, size, at, m->heat);
  return size;
}

// ---- one pose: keypoints in the order of their scores, from the root along the skeleton
typedef struct {
  float score;
  Point point;
  int32_t keypoint;
} Reached;

static Reached reach(const Maps *m, Point from, int32_t edge, int32_t child) {
  // libcoral moves only edges above 16 by one block of channels, edge 16 itself stays.
  const int32_t channel = edge > EDGES ? edge + EDGES : edge;
  Point at = moved(m->middle, m, 4 * EDGES, channel, EDGES, from);
  for (int32_t i = 0; i < REFINEMENTS; i++) at = moved(m->near, m, 2 * KEYPOINTS, child, KEYPOINTS, at);
  return (Reached){sample(m->heat, m, KEYPOINTS, child, at, 1.0f), at, child};
}

static void walk(const Maps *m, Point root, int32_t keypoint, Pose *pose) {
  Reached queue[QUEUE] = {{sample(m->heat, m, KEYPOINTS, keypoint, root, 1.0f), root, keypoint}};
  int32_t size = 1, done = 0;
  while (size > 0) {
    int32_t best = 0;  // entries stay in the order they came, so the first of equals wins
    for (int32_t i = 1; i < size; i++) best = queue[i].score > queue[best].score ? i : best;
    const Reached now = queue[best];
    size--;
    for (int32_t i = best; i < size; i++) queue[i] = queue[i + 1];
    if (done >> now.keypoint & 1) continue;
    done |= 1 << now.keypoint;
    pose->points[2 * now.keypoint] = now.point.y;
    pose->points[2 * now.keypoint + 1] = now.point.x;
    pose->scores[now.keypoint] = sigmoid(now.score);
    for (int32_t edge = 0; edge < 2 * EDGES; edge++) {
      const int32_t e = edge % EDGES, forward = edge < EDGES;
      const int32_t parent = forward ? PARENTS[e] : CHILDREN[e], child = forward ? CHILDREN[e] : PARENTS[e];
      if (parent == now.keypoint && !(done >> child & 1) && size < QUEUE) queue[size++] = reach(m, now.point, edge, child);
    }
  }
}

// ---- scores
static int is_near(const float *a, const float *b, float squared) {
  const float dy = b[0] - a[0], dx = b[1] - a[1];
  return dy * dy + dx * dx <= squared;
}

// The mean over all keypoints of those that are not hidden, summed from the largest down.
static float mean_score(const float *scores, int32_t hidden) {
  float total = 0.0f;
  for (int32_t taken = 0; taken != (1 << KEYPOINTS) - 1;) {
    int32_t best = -1;
    for (int32_t k = 0; k < KEYPOINTS; k++) {
      if (!(taken >> k & 1) && (best < 0 || scores[k] > scores[best])) best = k;
    }
    taken |= 1 << best;
    if (!(hidden >> best & 1)) total += scores[best];
  }
  return total / (float)KEYPOINTS;
}

// Best first; of equal means the earlier stays in front.
static void sort_poses(Pose *poses, int32_t count) {
  for (int32_t i = 1; i < count; i++) {
    for (int32_t j = i; j > 0 && poses[j].mean > poses[j - 1].mean; j--) {
      const Pose swapped = poses[j];
      poses[j] = poses[j - 1];
      poses[j - 1] = swapped;
    }
  }
}

// Keypoints that a better pose has too do not count; poses that fall below the threshold are dropped.
static int32_t suppress(Pose *poses, int32_t count, float squared, float threshold) {
  sort_poses(poses, count);
  for (int32_t i = count - 1; i >= 0; i--) {  // from the end: earlier points are compared, means are not
    int32_t hidden = 0;
    for (int32_t j = 0; j < i; j++) {
      for (int32_t k = 0; k < KEYPOINTS; k++) {
        hidden |= is_near(poses[i].points + 2 * k, poses[j].points + 2 * k, squared) << k;
      }
    }
    poses[i].mean = mean_score(poses[i].scores, hidden);
  }
  sort_poses(poses, count);
  int32_t kept = 0;
  while (kept < count && poses[kept].mean >= threshold) kept++;
  return kept;
}

// ---- masks: the pose whose keypoints the pixel's long offsets come closest to
static void paint(const float *far, const Maps *m, const float *points, int32_t count, float stride, float *masks) {
  const int32_t pixels = m->h * m->w;
  for (int32_t i = 0; i < pixels && count > 0; i++) {
    float reached[2 * KEYPOINTS];
    for (int32_t k = 0; k < KEYPOINTS; k++) {
      Point at = {(float)(i / m->w), (float)(i % m->w)};
      for (int32_t r = 0; r < MASK_REFINEMENTS; r++) at = moved(far, m, 2 * KEYPOINTS, k, KEYPOINTS, at);
      reached[2 * k] = at.y * stride;
      reached[2 * k + 1] = at.x * stride;
    }
    int32_t best = 0;
    float least = INFINITE;
    for (int32_t p = 0; p < count; p++) {
      float total = 0.0f;
      for (int32_t k = 0; k < KEYPOINTS; k++) {
        const float *point = points + (p * KEYPOINTS + k) * 2;
        const float dy = point[0] - reached[2 * k], dx = point[1] - reached[2 * k + 1];
        total += dy * dy + dx * dx;
      }
      if (total < least) {
        least = total;
        best = p;
      }
    }
    masks[best * pixels + i] = 1.0f;
  }
}

void f32_posenet_decode(const float *restrict heat, const float *restrict near, const float *restrict middle,
                        const float *restrict far, float *restrict points, float *restrict scores,
                        float *restrict poses, float *restrict count, float *restrict masks, int32_t *restrict heap,
                        Pose *restrict found, int32_t h, int32_t w, int32_t most, float stride, float least,
                        float threshold, float radius) {
  const Maps maps = {heat, near, middle, h, w, 1.0f / stride};
  const float squared = (radius / stride) * (radius / stride);
  int32_t size = find_candidates(&maps, least, heap), number = 0;
  while (size > 0 && number < most) {
    const int32_t at = heap[0], pixel = at / KEYPOINTS, keypoint = at % KEYPOINTS;
    heap[0] = heap[--size];
    sink(heap, size, 0, heat);
    const float *offset = near + pixel * 2 * KEYPOINTS + keypoint;
    const Point root = {clamp((float)(pixel / w) + offset[0] * maps.cell, h),
                        clamp((float)(pixel % w) + offset[KEYPOINTS] * maps.cell, w)};
    int32_t taken = 0;
    for (int32_t i = 0; i < number; i++) taken |= is_near(&root.y, found[i].points + 2 * keypoint, squared);
    if (taken) continue;
    walk(&maps, root, keypoint, found + number);
    found[number].mean = mean_score(found[number].scores, 0);
    number += found[number].mean >= threshold;
  }
  number = suppress(found, number, squared, threshold);
  for (int32_t i = 0; i < most; i++) {
    for (int32_t j = 0; j < 2 * KEYPOINTS; j++) {
      points[i * 2 * KEYPOINTS + j] = i < number ? found[i].points[j] * stride : 0.0f;
    }
    for (int32_t k = 0; k < KEYPOINTS; k++) scores[i * KEYPOINTS + k] = i < number ? found[i].scores[k] : 0.0f;
    poses[i] = i < number ? found[i].mean : 0.0f;
  }
  count[0] = (float)number;
  if (!masks) return;
  for (int32_t i = 0; i < most * h * w; i++) masks[i] = 0.0f;
  paint(far, &maps, points, number, stride, masks);
}
