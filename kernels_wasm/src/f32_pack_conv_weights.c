// Packs dense convolution weights into column panels for the f32_conv2d_nhwc_* tiles.
//
//   w     [co_total, taps, ci]    read: float32, or float16 bits when stored_f16 (OHWI as the model stores it)
//   bias  [co_total] float32      read; 0 = no bias
//   y     [ceil(co/nr)][nr + taps*ci*nr]  written: a panel is its nr biases, then nr weights for each tap and channel
//
// Packs the co outputs that start at first_co; columns past co are zero.  Needs: y does not overlap w or bias.
#include "half.h"

void f32_pack_conv_weights(const void *restrict w, const float *restrict bias, float *restrict y, int32_t first_co,
                           int32_t co, int32_t depth, int32_t nr, int32_t stored_f16, int32_t begin, int32_t end) {
  const int32_t panel = nr + depth * nr;
  for (int32_t p = begin; p < end; p++) {
    float *to = y + p * panel;
    for (int32_t j = 0; j < nr; j++) {
      const int32_t column = p * nr + j;
      const int32_t out = first_co + column;
      to[j] = column < co && bias ? bias[out] : 0.0f;
      float *cell = to + nr + j;
      for (int32_t k = 0; k < depth; k++, cell += nr) {
        if (column >= co) {
          *cell = 0.0f;
        } else if (stored_f16) {
          *cell = f32_from_f16(((const uint16_t *)w)[out * depth + k]);
        } else {
          *cell = ((const float *)w)[out * depth + k];
        }
      }
    }
  }
}
