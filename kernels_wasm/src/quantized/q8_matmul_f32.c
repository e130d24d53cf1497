// A matrix product of bytes that gives real numbers.
//
//   x       [rows, k]  bytes, read, up to 7 past the end      x_flip  0x80 for int8, 0 for uint8
//   w       panels of q8_pack_weights, whose scales are those of x times those of the weights   read
//   bias    [n] or 0   read, up to 12 bytes past its end
//   y       [rows, n]  written: clamp(float32(sum) * scale + bias, lo, hi)
//
// Contract: q8_product.h. Needs: x and y do not overlap. Units: tiles of Q8_ROWS rows.
#include "q8_product.h"

void q8_matmul_f32(const uint8_t *restrict x, const int16_t *restrict w, const float *restrict bias,
                   float *restrict y, int32_t rows, int32_t k, int32_t n, int32_t x_flip, float lo, float hi,
                   int32_t begin, int32_t end) {
  const Source source = {.x = x, .ih = 1, .iw = rows, .ci = k, .x_stride = k, .oh = 1, .ow = rows, .kh = 1, .kw = 1,
                         .sh = 1, .sw = 1, .dh = 1, .dw = 1, .x_flip = x_flip, .is_row = 1, .is_copy = 1};
  const Target to = {.y = (uint8_t *)y, .bias = bias, .y_step = 4 * n, .is_real = 1, .lo = lo, .hi = hi};
  multiply_tiles(&source, w, to, rows, n, begin, end);
}
