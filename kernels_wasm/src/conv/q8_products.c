// Quantised dense products: a convolution of any window (a matrix product is one with a 1x1 window), and a matrix
// product that gives real numbers. One file, so that their tiles stand once.
//
// q8_conv2d_nhwc
//   x  [n, ih, iw, x_stride]  bytes; ci channels from x on are read, up to 15 bytes past the end
//   w  panels of q8_pack_weights      y  [n, oh, ow, y_stride]  bytes; co channels from y on are written
//   x_zero                 the stored byte of zero in x's uint8 form: what padding holds
//   x_flip, y_flip         0x80 for int8, 0 for uint8
//   lo, hi, y_zero         as in requantize.h
//
// q8_matmul_f32
//   x       [rows, k]  bytes, read, up to 15 past the end     x_flip  0x80 for int8, 0 for uint8
//   w       panels of q8_pack_weights, whose scales are those of x times those of the weights   read
//   bias    [n] or 0   read, up to 12 bytes past its end
//   y       [rows, n]  written: clamp(float32(sum) * scale + bias, lo, hi)
//
// Contract: q8_product.h.
// Needs: x and y do not overlap. Units: tiles of Q8_ROWS output pixels or rows.
#include "q8_product.h"

void q8_conv2d_nhwc(const uint8_t *restrict x, const uint8_t *restrict w, uint8_t *restrict y, int32_t n, int32_t ih,
                    int32_t iw, int32_t ci, int32_t x_stride, int32_t oh, int32_t ow, int32_t co, int32_t y_stride,
                    int32_t kh, int32_t kw, int32_t sh, int32_t sw, int32_t dh, int32_t dw, int32_t pad_top,
                    int32_t pad_left, int32_t x_zero, int32_t x_flip, int32_t y_zero, int32_t y_flip, float lo,
                    float hi, int32_t begin, int32_t end) {
  const Source source = {x, ih, iw, ci, x_stride, oh, ow, kh, kw, sh, sw, dh, dw, pad_top, pad_left,
                         form_of_panels(x_flip, x_zero, w),
                         kw == 1 || (dw == 1 && x_stride == ci),
                         kh * kw * sh * sw == 1 && oh == ih && ow == iw && !pad_top && !pad_left};
  const Target to = {.y = y, .step = y_stride, .stored = stored_as(lo, hi, y_zero, y_flip)};
  multiply_tiles(&source, w, 0, to, n * oh * ow, co, begin, end);
}

void q8_matmul_f32(const uint8_t *restrict x, const uint8_t *restrict w, const float *restrict bias,
                   float *restrict y, int32_t rows, int32_t k, int32_t n, int32_t x_flip, float lo, float hi,
                   int32_t begin, int32_t end) {
  const Source source = {.x = x, .ih = 1, .iw = rows, .ci = k, .x_stride = k, .oh = 1, .ow = rows, .kh = 1, .kw = 1,
                         .sh = 1, .sw = 1, .dh = 1, .dw = 1, .form = form_of_panels(x_flip, 0, w), .is_row = 1, .is_copy = 1};
  const Target to = {.y = (uint8_t *)y, .step = 4 * n, .is_real = 1, .lo = v4f_splat(lo), .hi = v4f_splat(hi)};
  multiply_tiles(&source, w, bias, to, rows, n, begin, end);
}
