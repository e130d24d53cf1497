// Moving bytes that lie together.
#pragma once

#include "simd.h"

typedef uint32_t word_anywhere __attribute__((aligned(1), may_alias));

// Copies n bytes; from and to do not overlap. Reads and writes nothing else.
static __attribute__((noinline, unused)) void copy_bytes(uint8_t *restrict to, const uint8_t *restrict from, int32_t n) {
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

typedef uint64_t long_anywhere __attribute__((aligned(1), may_alias));

// Copies rows of as many bytes each, which begin `to_step` and `from_step` bytes apart; none is read that another one
// writes. Reads and writes nothing else.
static __attribute__((noinline, unused)) void copy_rows(uint8_t *to, const uint8_t *from, int32_t rows, int32_t bytes,
                                                        int32_t to_step, int32_t from_step) {
  const int32_t last16 = bytes - 16, last8 = bytes - 8, last4 = bytes - 4;
  for (; rows > 0; rows--, to += to_step, from += from_step) {
    if (LIKELY(last16 >= 0)) {
      NO_UNROLL for (int32_t i = 0; i < last16; i += 16) v16u_store(to + i, v16u_load(from + i));
      v16u_store(to + last16, v16u_load(from + last16));  // overlaps what is already there
    } else if (last8 >= 0) {
      *(long_anywhere *)to = *(const long_anywhere *)from;
      *(long_anywhere *)(to + last8) = *(const long_anywhere *)(from + last8);
    } else if (last4 >= 0) {
      *(word_anywhere *)to = *(const word_anywhere *)from;
      *(word_anywhere *)(to + last4) = *(const word_anywhere *)(from + last4);
    } else {
      NO_UNROLL for (int32_t i = 0; i < bytes; i++) to[i] = from[i];
    }
  }
}
