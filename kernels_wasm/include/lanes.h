// Folding the four lanes of a vector into one value, and vectors of which only some lanes count.
#pragma once

#include "simd.h"

// The first `count` lanes of a, the others from b.
INLINE v4f v4f_first_lanes(v4f a, int32_t count, v4f b) {
  return v4f_select((v4i){0, 1, 2, 3} < count, a, b);
}

// Loads the first `count` lanes, all of them from 4 on, and zeros from 0 down.
INLINE v4f v4f_load_lanes(const float *p, int32_t count) {
  return count >= 4 ? v4f_load(p) : count <= 0 ? v4f_splat(0.0f) : v4f_load_first(p, count);
}

// Stores the first `count` lanes, all of them from 4 on.
INLINE void v4f_store_lanes(float *p, v4f a, int32_t count) {
  if (LIKELY(count >= 4)) {
    v4f_store(p, a);
  } else {
    v4f_store_first(p, a, count);
  }
}

INLINE v4f plus(v4f a, v4f b) { return a + b; }  // a JOIN

// JOIN of all four lanes, in every lane.
#define FOLD(JOIN, a)                                                     \
  __extension__({                                                         \
    const v4f fold_all = (a);                                             \
    const v4f fold_2 = JOIN(fold_all, __builtin_shufflevector(fold_all, fold_all, 2, 3, 0, 1)); \
    JOIN(fold_2, __builtin_shufflevector(fold_2, fold_2, 1, 0, 3, 2));    \
  })
