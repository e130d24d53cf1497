// Packs 8-bit weights into panels of 8 outputs for q8_conv2d_nhwc, q8_matmul_f32 and q8_depthwise_nhwc.
//
//   w       weight (output o, tap t, channel c) is the byte w[o*co_step + t*tap_step + c*ci_step]   read
//   order   [taps] int32, the tap that comes at each place of a panel, or 0 for theirs   read
//   bias    [co] int32 or 0      scales [co] float32      zeros [co] int32, the weights' zero points   read
//   dense   whether a product of bytes may take them, where this engine's dot products of bytes are exact
//   y       [ceil(co/8)] panels written: 8 int32 sums to start from, 8 float32 scales, 8 int32 that every weight of
//           a column lacks, then the weights by k = place*ci + c: for each pair of k 8 columns of 2 int16, or for each
//           four of k 8 columns of 4 int8. Columns past co, and k past the last one, are zero.
//
// A weight that is no int8 lacks something: its column's sum lacks that times the sum of x.
// The sums start at bias - x_zero * sum(w - zero), so that a kernel multiplies x as it is stored. x_zero belongs to the
// uint8 form of x. Needs: y overlaps nothing that is read.
// Units: panels, ceil(co / 8).
#include "q8_form.h"

void q8_pack_weights(const uint8_t *restrict w, const int32_t *restrict bias, const float *restrict scales,
                     const int32_t *restrict zeros, const int32_t *restrict order, uint8_t *restrict y, int32_t co,
                     int32_t taps, int32_t ci, int32_t co_step, int32_t tap_step, int32_t ci_step, int32_t w_signed,
                     int32_t x_zero, int32_t dense, int32_t begin, int32_t end) {
  const Form form = dense ? form_of(0, x_zero) : (Form){2, 0, x_zero};
  const int32_t depth = taps * ci, bytes = panel_bytes(&form, depth);
  for (int32_t panel = begin; panel < end; panel++) {
    uint8_t *to = y + panel * bytes;
    int32_t *sums = (int32_t *)to, *lacking = sums + 2 * COLUMNS;
    float *factors = (float *)(sums + COLUMNS);
    for (int32_t i = HEAD; i < bytes; i++) to[i] = 0;
    for (int32_t column = 0; column < COLUMNS; column++) {
      const int32_t o = panel * COLUMNS + column;
      sums[column] = lacking[column] = 0;
      factors[column] = 0.0f;
      if (o >= co) continue;
      const int32_t zero = zeros[o], lacks = form.size == 2 ? 0 : w_signed ? -zero : 128 - zero;
      int32_t total = 0, k = 0;
      for (int32_t place = 0; place < taps; place++) {
        const int32_t t = order ? order[place] : place;
        for (int32_t c = 0; c < ci; c++, k++) {
          const uint8_t byte = w[o * co_step + t * tap_step + c * ci_step];
          const int32_t weight = (w_signed ? (int8_t)byte : byte) - zero, kept = weight - lacks, at = k * form.size;
          uint8_t *cell = to + HEAD + (at / GROUP * COLUMNS + column) * GROUP + at % GROUP;
          cell[0] = (uint8_t)kept;
          if (form.size == 2) cell[1] = (uint8_t)(kept >> 8);
          total += weight;
        }
      }
      sums[column] = (bias ? bias[o] : 0) - form.zero * total;
      lacking[column] = lacks;
      factors[column] = scales[o];
    }
  }
}
