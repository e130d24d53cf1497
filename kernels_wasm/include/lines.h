// The lines of a tensor [outer, r, inner] along its middle axis.
#pragma once

#include "simd.h"

// Begins a loop over the lines [begin, end): xp and yp stand on the first elements of a line, `inner` apart.
#define FOR_EACH_LINE(X, Y, Y_LENGTH)                                             \
  for (int32_t i = begin; i < end; i++) {                                         \
    const int32_t outer = i / inner, column = i % inner;                          \
    const __typeof__(*(X)) *xp = (X) + outer * r * inner + column;                \
    __typeof__(*(Y)) *yp = (Y) + outer * (Y_LENGTH) * inner + column;
