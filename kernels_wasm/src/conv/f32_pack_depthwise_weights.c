// Packs depthwise weights into blocks of 4 channels for the f32_depthwise_nhwc* kernels.
//
//   w     read: float32, or float16 bits when stored_f16; the weight of a tap and channel lies at
//         tap * tap_stride + channel * channel_stride
//   bias  [c]  read; 0 = no bias
//   y     [ceil(c/4)][4 + taps * 4]  written: a block is 4 biases, then 4 weights for each tap
//
// Channels past c are zero.  Needs: y overlaps neither w nor bias.
// Units: blocks, ceil(c / 4).
#include "half.h"

void f32_pack_depthwise_weights(const void *restrict w, const float *restrict bias, float *restrict y, int32_t c,
                                int32_t taps, int32_t tap_stride, int32_t channel_stride, int32_t stored_f16,
                                int32_t begin, int32_t end) {
  for (int32_t block = begin; block < end; block++) {
    float *to = y + block * (4 + taps * 4);
    for (int32_t lane = 0; lane < 4; lane++) {
      const int32_t channel = block * 4 + lane;
      const int exists = channel < c;
      to[lane] = exists && bias ? bias[channel] : 0.0f;
      for (int32_t tap = 0; tap < taps; tap++) {
        const int32_t from = tap * tap_stride + channel * channel_stride;
        to[4 + tap * 4 + lane] =
            !exists ? 0.0f : stored_f16 ? f32_from_f16(((const uint16_t *)w)[from]) : ((const float *)w)[from];
      }
    }
  }
}
