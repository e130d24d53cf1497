// Moving bytes that lie together.
#pragma once

#include "simd.h"

typedef uint32_t word_anywhere __attribute__((aligned(1), may_alias));

// Copies n bytes; from and to do not overlap. Reads and writes nothing else.
static __attribute__((noinline)) void copy_bytes(uint8_t *restrict to, const uint8_t *restrict from, int32_t n) {
  int32_t i = 0;
  NO_UNROLL for (; i + 16 <= n; i += 16) v16u_store(to + i, v16u_load(from + i));
  if (i == n) return;
  if (n >= 16) {
    v16u_store(to + n - 16, v16u_load(from + n - 16));  // overlaps what is already there
    return;
  }
  NO_UNROLL for (; i + 4 <= n; i += 4) *(word_anywhere *)(to + i) = *(const word_anywhere *)(from + i);
  NO_UNROLL for (; i < n; i++) to[i] = from[i];
}
