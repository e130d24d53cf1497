// Packs the weights of a 1x1 convolution that are mostly zero for the f32_sparse_conv2d_nhwc_* kernels.
//
//   w     [co, ci]  read: dense float32
//   bias  [co]      read; 0 = no bias
//   y     written, 32-bit words: for each `near` channels where each output's entries begin [co4], and where the last
//         ones end; biases [co4]; then two words an entry: channel * pixels, of these channels, and the weight.
//         co4 is co rounded up to 4, and the outputs past co have no entries
//   entries: how many there is room for; values beyond are left out.
//   Needs: as many entries as w has values that are not zero; y overlaps neither w nor bias.
//   Units: none, one thread does all.
#include "simd.h"

void f32_pack_sparse_weights(const float *restrict w, const float *restrict bias, int32_t *restrict y, int32_t co,
                             int32_t ci, int32_t near, int32_t pixels, int32_t entries) {
  const int32_t co4 = (co + 3) / 4 * 4, rounds = (ci + near - 1) / near;
  float *biases = (float *)(y + rounds * co4 + 1);
  int32_t *start = y, *entry = y + (rounds + 1) * co4 + 1;
  int32_t count = 0;
  for (int32_t from = 0; from < ci; from += near) {
    const int32_t behind = ci - from < near ? ci : from + near;
    for (int32_t o = 0; o < co4; o++) {
      *start++ = count;
      biases[o] = o < co && bias ? bias[o] : 0.0f;
      for (int32_t c = from; o < co && c < behind; c++) {
        const float value = w[o * ci + c];
        if (value == 0.0f || count == entries) continue;
        entry[0] = (c - from) * pixels;
        entry[1] = __builtin_bit_cast(int32_t, value);
        entry += 2;
        count++;
      }
    }
  }
  *start = count;
}
