// Decodes the raw outputs of a single-shot detector and keeps what scores high enough.
//
//   boxes       [anchors, 4 + 2*keypoints]  centre x, y, width, height, keypoints, in pixels from the anchor   read
//   scores      [anchors]                   logits                                                           read
//   layers      [layer_count][2]            cells a side, anchors a cell; anchors run row by row               read
//   asked       [1]                         the minimum score; min_score where it is not above 0                 read
//   candidates  [anchors][5 + 2*keypoints]  left, top, right, bottom, keypoints in 0..1 of the input, score    written
//   count       [1]                         how many candidates there are                                      written
//
// anchors is how many there are room for; size is the model's input width and height in pixels; logits are clipped to +-score_clip. A NaN scores nothing.
// Needs: room for a candidate for each anchor. Units: none, one thread does all.
// Anchors are the centres of their cells and as large as the input (fixed_anchor_size).
// Source: MediaPipe SsdAnchorsCalculator, TensorsToDetectionsCalculator (reverse_output_order, sigmoid_score);
// agrees with backends/reference/detection.py
#include "math.h"

INLINE void decode_box(const float *raw, float *out, float cx, float cy, float inverse, int32_t keypoints, float score) {
  const float x = raw[0] * inverse + cx, y = raw[1] * inverse + cy;
  const float half_w = raw[2] * inverse * 0.5f, half_h = raw[3] * inverse * 0.5f;
  out[0] = x - half_w;
  out[1] = y - half_h;
  out[2] = x + half_w;
  out[3] = y + half_h;
  for (int32_t k = 0; k < keypoints; k++) {
    out[4 + 2 * k] = raw[4 + 2 * k] * inverse + cx;
    out[5 + 2 * k] = raw[5 + 2 * k] * inverse + cy;
  }
  out[4 + 2 * keypoints] = score;
}

void f32_ssd_decode(const float *restrict boxes, const float *restrict scores, const int32_t *restrict layers,
                    const float *restrict asked, float *restrict candidates, int32_t *restrict count,
                    int32_t layer_count, int32_t size, int32_t keypoints, int32_t anchors, float score_clip,
                    float min_score) {
  const int32_t raw_width = 4 + 2 * keypoints, width = raw_width + 1;
  const float inverse = 1.0f / (float)size, least = *asked > 0.0f ? *asked : min_score;
  int32_t anchor = 0, found = 0;
  for (int32_t layer = 0; layer < layer_count; layer++) {
    const int32_t cells = layers[2 * layer], per_cell = layers[2 * layer + 1];
    for (int32_t cell = 0; cell < cells * cells; cell++) {
      const float cx = ((float)(cell % cells) + 0.5f) / (float)cells, cy = ((float)(cell / cells) + 0.5f) / (float)cells;
      for (int32_t a = 0; a < per_cell && anchor < anchors; a++, anchor++) {
        const float logit = v4f_clamp(v4f_splat(scores[anchor]), v4f_splat(-score_clip), v4f_splat(score_clip))[0];
        const float score = v4f_sigmoid(v4f_splat(logit))[0];
        if (!(score >= least)) continue;
        decode_box(boxes + anchor * raw_width, candidates + found * width, cx, cy, inverse, keypoints, score);
        found++;
      }
    }
  }
  *count = found;
}
