// Where an output sample lies on an input axis.
#pragma once

#include <stdint.h>

#include "constants.h"

// In input pixels, not yet clamped: double, so that whole positions come out whole. `how` is a RESAMPLE_ constant.
static inline double resample_position(int32_t at, int32_t size, int32_t count, int32_t how) {
  if (how == RESAMPLE_CORNERS) return count > 1 ? at * ((double)(size - 1) / (double)(count - 1)) : at;
  const double step = (double)size / (double)count;
  return how == RESAMPLE_HALF_PIXEL ? (at + 0.5) * step - 0.5 : at * step;
}

static inline double resample_clamp(double at, int32_t size) {
  return at < 0.0 ? 0.0 : at > size - 1 ? size - 1 : at;
}

// The nearest input pixel: halves round up with corners and half pixels, plain positions round down.
static inline int32_t resample_nearest(int32_t at, int32_t size, int32_t count, int32_t how) {
  const double position = resample_position(at, size, count, how);
  return (int32_t)resample_clamp(__builtin_floor(how == RESAMPLE_PLAIN ? position : position + 0.5), size);
}
