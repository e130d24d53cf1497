// What a detector of the SSD family ends with: boxes decoded from anchors, overlapping ones dropped, the best listed.
//
//   raw        [n, raw_width]   centre y, x, height, width of each box in the scale of its anchor; more is ignored   read
//   scores     [n, columns]     of which the last `classes` are read
//   anchors    [n, 4]           centre y, x, height, width              read
//   work       [6*n + 2*limit]  scratch
//   boxes      [limit * per_box, 4]   top, left, bottom, right          written, zero behind the last, as all results
//   labels, kept  [limit * per_box]   classes and scores                written
//   count      [1]              how many detections there are           written
// Needs: nothing overlaps.
//
// Units: none, one thread does all. With `regular` each class is suppressed by itself, and keeps `per_class` at most;
// else each box is judged by its best class, and its best `per_box` classes are listed.
// Source: tensorflow v2.18.0, lite/kernels/detection_postprocess.cc
#include "math.h"

#include "boxes.h"

typedef struct {
  const float *scores, *boxes;
  int32_t *order, *chosen;
  int32_t n;
  float least, overlap;
} suppression;

// The positions of the boxes that stay, best first; of equal scores the first box wins. Returns how many.
static int32_t suppress(const suppression *s, int32_t limit) {
  int32_t left = 0, found = 0;
  for (int32_t i = 0; i < s->n; i++) {
    if (s->scores[i] >= s->least) s->order[left++] = i;
  }
  while (left > 0 && found < limit) {
    int32_t best = 0, rest = 0;
    for (int32_t k = 1; k < left; k++) {
      if (s->scores[s->order[k]] > s->scores[s->order[best]]) best = k;
    }
    const int32_t winner = s->order[best];
    s->chosen[found++] = winner;
    for (int32_t k = 0; k < left; k++) {
      const int32_t other = s->order[k];
      if (k == best || intersection_over_union(s->boxes + 4 * winner, s->boxes + 4 * other) > s->overlap) continue;
      s->order[rest++] = other;
    }
    left = rest;
  }
  return found;
}

static void decode(const float *raw, const float *anchors, float *boxes, int32_t n, int32_t raw_width, const float *scale) {
  for (int32_t i = 0; i < n; i++) {
    const float *box = raw + i * raw_width, *anchor = anchors + 4 * i;
    const v4f grown = v4f_exp((v4f){box[2] / scale[2], box[3] / scale[3], 0.0f, 0.0f});
    const float y = box[0] / scale[0] * anchor[2] + anchor[0], x = box[1] / scale[1] * anchor[3] + anchor[1];
    const float h = 0.5f * grown[0] * anchor[2], w = 0.5f * grown[1] * anchor[3];
    boxes[4 * i] = y - h, boxes[4 * i + 1] = x - w, boxes[4 * i + 2] = y + h, boxes[4 * i + 3] = x + w;
  }
}

void f32_detection_postprocess(const float *restrict raw, const float *restrict scores, const float *restrict anchors,
                               const float *restrict scale, float *restrict work, float *restrict boxes,
                               float *restrict labels, float *restrict kept, float *restrict count, int32_t n,
                               int32_t raw_width, int32_t columns, int32_t classes, int32_t limit, int32_t per_box,
                               int32_t per_class, int32_t regular, float least, float overlap) {
  float *decoded = work, *judged = work + 4 * n;
  int32_t *order = (int32_t *)(judged + n), *chosen = order + n, *ranked = chosen + limit;
  const int32_t offset = columns - classes, results = limit * per_box;
  for (int32_t i = 0; i < results; i++) labels[i] = kept[i] = 0.0f;
  for (int32_t i = 0; i < 4 * results; i++) boxes[i] = 0.0f;
  decode(raw, anchors, decoded, n, raw_width, scale);
  const suppression s = {judged, decoded, order, chosen, n, least, overlap};
  int32_t found = 0;
  if (regular) {
    // The best so far, in falling order; of equal scores the later class goes first. `kept` and `labels` hold them.
    for (int32_t c = 0; c < classes; c++) {
      for (int32_t i = 0; i < n; i++) judged[i] = scores[i * columns + offset + c];
      const int32_t more = suppress(&s, per_class < limit ? per_class : limit);
      int32_t from = 0;
      for (int32_t k = 0; k < more; k++) {
        const float score = judged[chosen[k]];
        int32_t at = from;
        while (at < found && kept[at] > score) at++;
        from = at + 1;
        if (at >= limit) break;
        found += found < limit;
        for (int32_t m = found - 1; m > at; m--) kept[m] = kept[m - 1], labels[m] = labels[m - 1], ranked[m] = ranked[m - 1];
        kept[at] = score, labels[at] = (float)c, ranked[at] = chosen[k];
      }
    }
    for (int32_t k = 0; k < found; k++) {
      for (int32_t j = 0; j < 4; j++) boxes[4 * k + j] = decoded[4 * ranked[k] + j];
    }
  } else {
    for (int32_t i = 0; i < n; i++) {
      float best = scores[i * columns + offset];
      for (int32_t c = 1; c < classes; c++) best = larger(best, scores[i * columns + offset + c]);
      judged[i] = best;
    }
    found = suppress(&s, limit);
    const int32_t listed = per_box < classes ? per_box : classes;
    for (int32_t k = 0; k < found; k++) {
      const float *own = scores + chosen[k] * columns + offset;
      float last = INFINITE;
      int32_t last_class = -1;
      for (int32_t m = 0; m < listed; m++) {
        int32_t best = -1;
        for (int32_t c = 0; c < classes; c++) {
          if (!(own[c] < last || (own[c] == last && c > last_class))) continue;
          if (best < 0 || own[c] > own[best]) best = c;
        }
        if (best < 0) break;
        last = own[best], last_class = best;
        labels[k * per_box + m] = (float)best, kept[k * per_box + m] = last;
        for (int32_t j = 0; j < 4; j++) boxes[4 * (k * per_box + m) + j] = decoded[4 * chosen[k] + j];
      }
    }
  }
  count[0] = (float)found;
}
