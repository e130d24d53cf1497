// What the depthwise kernels of a 3x3 window share: a row of outputs of one panel, and how its sums are stored.
#pragma once

#include "q8_form.h"
#include "requantize.h"

typedef struct {
  const uint8_t *rows[3], *pad;  // the first pixel of each row of the window, at a panel's channels
  uint8_t *y;
  int32_t iw, c, columns;  // of y: how many channels of the panel exist
  Stored stored;
} Line;

// Sums as results: four channels of `half` of the panel.
INLINE v4i ended_sums(const Line *line, v4i sums, const uint8_t *panel, const int half) {
  return requantize(sums, v4f_load(panel + 4 * COLUMNS + 16 * half), &line->stored);
}

// What a sum of four channels starts from.
INLINE v4i begun_sums(const uint8_t *panel, const int half) { return v4i_load(panel + 16 * half); }

// Eight results at y, as many of them as there are channels, and eight at `next` if it is a place.
INLINE void put_results(const Line *line, uint8_t *y, uint8_t *next, v4i ended[2][2]) {
  const v8s first = v8s_narrow(ended[0][0], ended[0][1]), second = v8s_narrow(ended[1][0], ended[1][1]);
#if SIMD
  store_pair(y, next, stored_pair(first, second, &line->stored), line->columns);
#else
  store_bytes(y, stored_pair(first, first, &line->stored), line->columns);
  if (next) store_bytes(next, stored_pair(second, second, &line->stored), line->columns);
#endif
}
