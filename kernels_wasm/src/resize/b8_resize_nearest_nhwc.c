// Nearest resampling, NHWC, of any element type: whole pixels of bytes are copied.
//
//   x  [n, ih, iw, c_bytes]  read
//   y  [n, oh, ow, c_bytes]  written in full
//   how: RESAMPLE_PLAIN, RESAMPLE_CORNERS or RESAMPLE_HALF_PIXEL of resample.h.  Needs: y does not overlap x.
//
// By hand: positions are float64; the described kernel takes 0.5 (one channel) to 1.14 of the time (six shapes, wasmtime,
// 2026-11-28).
// Units: output rows, n * oh.
#include "bytes.h"
#include "resample.h"

void b8_resize_nearest_nhwc(const uint8_t *restrict x, uint8_t *restrict y, int32_t n, int32_t ih, int32_t iw,
                            int32_t c_bytes, int32_t oh, int32_t ow, int32_t how, int32_t begin, int32_t end) {
  (void)n;
  for (int32_t row = begin; row < end; row++) {
    const int32_t image = row / oh, iy = resample_nearest(row - image * oh, ih, oh, how);
    const uint8_t *from = x + (image * ih + iy) * iw * c_bytes;
    uint8_t *to = y + row * ow * c_bytes;
    for (int32_t ox = 0; ox < ow; ox++, to += c_bytes) {
      copy_bytes(to, from + resample_nearest(ox, iw, ow, how) * c_bytes, c_bytes);
    }
  }
}
