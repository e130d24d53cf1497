// Packs the 4- or 8-bit weights of a float product into panels of 8 outputs for f32_matmul_packed.
//
//   w       8 bits: weight (output o, step i of k) is the byte w[o*n_step + i*k_step] ^ flip; 4 bits: half of the byte
//           w[o*n_step + i/2] ^ flip, the low half for even i   read
//   scales  [n, groups], one number for all where scale_step is 0   read
//   zeros   as scales, by zero_step: the stored weight, after the flip, that stands for 0   read
//   y       panels written: for each group 8 scales, 8 zeros, then 8 bytes for each step of k, or for each two
//
// Outputs past n have scales of 0. Needs: y overlaps nothing that is read; group is even where it is not all of k.
// Units: panels, ceil(n / 8).
#include "simd.h"

enum { COLUMNS = 8, HEAD = 8 * COLUMNS, AT_ONCE = 16 };

#define HALVES(a, b, first) \
  __builtin_shufflevector(a, b, first, first + 16, first + 1, first + 17, first + 2, first + 18, first + 3, first + 19, \
                          first + 4, first + 20, first + 5, first + 21, first + 6, first + 22, first + 7, first + 23)
#define PAIRS(a, b, first) \
  __builtin_shufflevector(a, b, first, first + 8, first + 1, first + 9, first + 2, first + 10, first + 3, first + 11)
#define QUADS(a, b, first) __builtin_shufflevector(a, b, first, first + 4, first + 1, first + 5)

// 16 bytes of each of eight rows: all first ones side by side, then all second ones.
INLINE void turn(const uint8_t *from, int32_t row, v16u flip, uint8_t *to) {
  typedef uint16_t v8h __attribute__((vector_size(16)));
  typedef uint32_t v4h __attribute__((vector_size(16)));
  v16u x[COLUMNS];
  for (int32_t i = 0; i < COLUMNS; i++) {
    __builtin_memcpy(&x[i], from + i * row, AT_ONCE);
    x[i] ^= flip;
  }
  for (int32_t half = 0; half < 2; half++) {
    v8h two[COLUMNS / 2];
    for (int32_t i = 0; i < COLUMNS / 2; i++) {
      two[i] = (v8h)(half ? HALVES(x[2 * i], x[2 * i + 1], 8) : HALVES(x[2 * i], x[2 * i + 1], 0));
    }
    const v4h four[4] = {(v4h)PAIRS(two[0], two[1], 0), (v4h)PAIRS(two[2], two[3], 0), (v4h)PAIRS(two[0], two[1], 4),
                         (v4h)PAIRS(two[2], two[3], 4)};
    const v4h eight[4] = {QUADS(four[0], four[1], 0), QUADS(four[0], four[1], 2), QUADS(four[2], four[3], 0),
                          QUADS(four[2], four[3], 2)};
    __builtin_memcpy(to + half * sizeof eight, eight, sizeof eight);
  }
}

void pack_matmul_weights(const uint8_t *restrict w, const float *restrict scales, const float *restrict zeros,
                         uint8_t *restrict y, int32_t n, int32_t k, int32_t bits, int32_t group, int32_t n_step,
                         int32_t k_step, int32_t scale_step, int32_t zero_step, int32_t flip, int32_t begin,
                         int32_t end) {
  const int32_t groups = (k + group - 1) / group, fold = bits == 4, bytes = group >> fold;
  const v16u flips = (v16u){0} + (uint8_t)flip;
  for (int32_t panel = begin; panel < end; panel++) {
    const int32_t full = k_step == 1 && (panel + 1) * COLUMNS <= n;
    for (int32_t g = 0; g < groups; g++) {
      uint8_t *to = y + (panel * groups + g) * (HEAD + group * bits);
      for (int32_t column = 0; column < COLUMNS; column++) {
        const int32_t o = panel * COLUMNS + column, at = o * groups + g;
        ((float *)to)[column] = o < n ? scales[scale_step ? at : 0] : 0.0f;
        ((float *)to)[COLUMNS + column] = o < n ? zeros[zero_step ? at : 0] : 0.0f;
      }
      int32_t i = 0;
      for (; full && i + AT_ONCE <= bytes && g * group + ((i + AT_ONCE) << fold) <= k; i += AT_ONCE) {
        turn(w + panel * COLUMNS * n_step + (g * group >> fold) + i, n_step, flips, to + HEAD + i * COLUMNS);
      }
      for (; i < bytes; i++) {
        for (int32_t column = 0; column < COLUMNS; column++) {
          const int32_t o = panel * COLUMNS + column, step = g * group + (i << fold);
          const uint8_t byte = o < n && step < k ? w[o * n_step + (step >> fold) * k_step] ^ flip : 0;
          to[HEAD + i * COLUMNS + column] = byte;
        }
      }
    }
  }
}
