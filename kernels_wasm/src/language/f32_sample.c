// One number drawn from a row of logits.
//
//   x        [n]  read
//   options  temperature (0 or less: the largest logit), how many of the largest count (0: all), what share of their
//            weight counts, and the draw, 0 to 1
//   y        [2]  written: the place of the logit that was drawn, and of the largest; the first of equal ones
//   scratch  [2n] floats
//
// Weights are exp(x / temperature); the largest are kept until both bounds are reached, one at least.
// Needs: nothing overlaps. Units: one step.
#include "lanes.h"
#include "exponential.h"

INLINE int before(const float *x, int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); }

SMALL_PART void sink(const float *x, int32_t *heap, int32_t at, int32_t size) {
  const int32_t moved = heap[at];
  for (int32_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && before(x, heap[child + 1], heap[child])) child++;
    if (!before(x, heap[child], moved)) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

SMALL void f32_sample(const float *x, const float *options, int32_t *y, float *scratch, int32_t n) {
  int32_t best = 0;
  for (int32_t i = 1; i < n; i++) {
    if (x[i] > x[best]) best = i;
  }
  y[0] = y[1] = best;
  const float temperature = options[0];
  if (!(temperature > 0.0f)) return;
  int32_t *heap = (int32_t *)scratch, left = n;
  float *weights = scratch + n, total = 0.0f, kept = 0.0f;
  for (int32_t i = 0; i < n; i += 4) {
    v4f weight = exponential((v4f_load_lanes(x + i, n - i) - x[best]) / temperature);
    weight = v4f_first_lanes(weight, n - i, v4f_splat(0.0f));
    total += v4f_sum(weight);
  }
  for (int32_t i = 0; i < n; i++) heap[i] = i;
  for (int32_t i = n / 2 - 1; i >= 0; i--) sink(x, heap, i, n);
  const int32_t most = options[1] >= 1.0f && options[1] < (float)n ? (int32_t)options[1] : n;
  // The largest move to the end of the heap, one after the other. With a bound on their number, their sum comes first.
  float share = options[2] < 1.0f ? options[2] * total : INFINITE;
  if (most < n && options[2] < 1.0f) share = INFINITE;
  while (left > n - most && (kept < share || left == n)) {
    const int32_t largest = heap[0];
    const v4f weight = exponential(v4f_splat((x[largest] - x[best]) / temperature));
    weights[n - left] = weight[0];
    kept += weight[0];
    heap[0] = heap[--left];
    heap[left] = largest;
    sink(x, heap, 0, left);
  }
  int32_t count = n - left;
  if (most < n && options[2] < 1.0f) {
    const float wanted = options[2] * kept;
    kept = 0.0f;
    for (count = 0; count < n - left && (kept < wanted || !count); count++) kept += weights[count];
  }
  float rest = options[3] * kept;
  int32_t chosen = 0;
  for (; chosen < count - 1 && rest >= weights[chosen]; chosen++) rest -= weights[chosen];
  y[0] = heap[n - 1 - chosen];
}
