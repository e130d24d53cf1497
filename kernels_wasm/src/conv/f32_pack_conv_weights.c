// Packs dense weights into column panels for the f32_conv2d_nhwc_* and f32_conv_transpose2d_nhwc_* tiles.
//
//   w     read: float32, or float16 bits when stored_f16; the weight of group g, output o, tap t, channel c lies at
//         g * group_stride + (o / inner) * out_stride + (o % inner) * inner_stride + t * tap_stride + c
//   bias  [bias_count]  read; 0 = no bias; output o of group g takes bias[(g * co + o) % bias_count]
//   y     [groups * ceil(co/nr)][nr + taps * ci * nr]  written: a panel is nr biases, then nr weights a tap and channel
//         or, where nr is less than 4, then for each four of these steps the four weights of each output
//
// co and ci are those of one group. Columns past co are zero.  Needs: y overlaps neither w nor bias; taps * ci is a
// multiple of 4 where nr is 2 or 3.
// Units: groups * ceil(co / nr) panels.
#include "half.h"

void f32_pack_conv_weights(const void *restrict w, const float *restrict bias, float *restrict y, int32_t co,
                           int32_t taps, int32_t ci, int32_t nr, int32_t group_stride, int32_t out_stride,
                           int32_t inner, int32_t inner_stride, int32_t tap_stride, int32_t bias_count,
                           int32_t stored_f16, int32_t begin, int32_t end) {
  const int32_t panels = (co + nr - 1) / nr, panel_size = nr + taps * ci * nr;
  const int32_t step = nr < 4 ? 1 : nr, jump = nr < 4 ? 4 * (nr - 1) : 0;  // the jump behind four steps
  for (int32_t unit = begin; unit < end; unit++) {
    const int32_t group = unit / panels, first = (unit - group * panels) * nr;
    float *panel = y + unit * panel_size;
    for (int32_t j = 0; j < nr; j++) {
      const int32_t out = first + j;
      const int exists = out < co;
      panel[j] = exists && bias ? bias[(group * co + out) % bias_count] : 0.0f;
      float *cell = panel + nr + (nr < 4 ? 4 * j : j);
      int32_t k = 0;
      const int32_t column = group * group_stride + out / inner * out_stride + out % inner * inner_stride;
      for (int32_t tap = 0; tap < taps; tap++) {
        const int32_t from = column + tap * tap_stride;
        for (int32_t c = 0; c < ci; c++, cell += ++k & 3 ? step : step + jump) {
          *cell = !exists      ? 0.0f
                  : stored_f16 ? f32_from_f16(((const uint16_t *)w)[from + c])
                               : ((const float *)w)[from + c];
        }
      }
    }
  }
}
