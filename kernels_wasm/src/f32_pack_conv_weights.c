// Packs dense convolution weights into column panels for the f32_conv2d_nhwc_* tiles.
//
//   w     [groups * co, depth]  read: float32, or float16 bits when stored_f16; depth = kh * kw * ci as the model has it
//   bias  [groups * co]         read; 0 = no bias
//   y     [groups * ceil(co/nr)][nr + depth * nr]  written: a panel is nr biases, then nr weights for each depth
//
// Columns past co are zero.  Needs: y overlaps neither w nor bias.
// Units: groups * ceil(co / nr) panels.
#include "half.h"

void f32_pack_conv_weights(const void *restrict w, const float *restrict bias, float *restrict y, int32_t co,
                           int32_t depth, int32_t nr, int32_t stored_f16, int32_t begin, int32_t end) {
  const int32_t panels = (co + nr - 1) / nr;
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t group = unit / panels, first = (unit - group * panels) * nr;
    float *panel = y + unit * (nr + depth * nr);
    for (int32_t j = 0; j < nr; j++) {
      const int32_t out = group * co + first + j;
      const int exists = first + j < co;
      panel[j] = exists && bias ? bias[out] : 0.0f;
      float *cell = panel + nr + j;
      for (int32_t k = 0; k < depth; k++, cell += nr) {
        const int32_t from = out * depth + k;
        *cell = !exists ? 0.0f : stored_f16 ? f32_from_f16(((const uint16_t *)w)[from]) : ((const float *)w)[from];
      }
    }
  }
}
