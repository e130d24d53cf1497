// Packs the 4- or 8-bit weights of a float product into panels of 8 outputs for f32_matmul_packed.
//
//   w       8 bits: weight (output o, step i of k) is the byte w[o*n_step + i*k_step] ^ flip; 4 bits: half of the byte
//           w[o*n_step + i/2] ^ flip, the low half for even i   read
//   scales  [n, groups], one number for all where scale_step is 0   read
//   zeros   as scales: the stored weight, after the flip, that stands for 0   read
//   y       panels written: for each group 8 scales, 8 zeros, then 8 bytes for each step of k, or for each two
//
// Outputs past n have scales of 0. Needs: y overlaps nothing that is read; group is even where it is not all of k.
// Units: panels, ceil(n / 8).
#include "simd.h"

enum { COLUMNS = 8, HEAD = 8 * COLUMNS };

void pack_matmul_weights(const uint8_t *restrict w, const float *restrict scales, const float *restrict zeros,
                         uint8_t *restrict y, int32_t n, int32_t k, int32_t bits, int32_t group, int32_t n_step,
                         int32_t k_step, int32_t scale_step, int32_t flip, int32_t begin, int32_t end) {
  const int32_t groups = (k + group - 1) / group, per_byte = 8 / bits;
  for (int32_t panel = begin; panel < end; panel++) {
    for (int32_t g = 0; g < groups; g++) {
      uint8_t *to = y + (panel * groups + g) * (HEAD + group * bits);
      for (int32_t column = 0; column < COLUMNS; column++) {
        const int32_t o = panel * COLUMNS + column, inside = o < n, at = scale_step ? o * groups + g : 0;
        ((float *)to)[column] = inside ? scales[at] : 0.0f;
        ((float *)to)[COLUMNS + column] = inside ? zeros[at] : 0.0f;
        for (int32_t i = 0; i < group; i += per_byte) {
          const int32_t step = g * group + i;
          const uint8_t byte = inside && step < k ? w[o * n_step + step / per_byte * k_step] ^ flip : 0;
          to[HEAD + i / per_byte * COLUMNS + column] = byte;
        }
      }
    }
  }
}
