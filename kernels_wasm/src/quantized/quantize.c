// Between float32 and stored integers, one scale for the tensor or one for each channel.
//
//   dequantize  y = (x - zero) * scale
//   quantize    y = clamp(round(x * inverse) + zero), ties to even; inverse = 1 / scale; NaN gives the zero point
//
//   scales, inverses [channels] float32      zeros [channels] int32       read
//   channel of element i: i / inner % channels. Needs: x and y do not overlap.
// Units: elements.
#include "simd.h"

// Calls BODY for runs of elements [i, last) that share `channel`.
#define EACH_RUN(...)                                                   \
  for (int32_t first = begin, last; first < end; first = last) {        \
    const int32_t run = first / inner, channel = run % channels;        \
    last = (run + 1) * inner < end ? (run + 1) * inner : end;           \
    __VA_ARGS__                                                               \
  }

// int32 minus a zero point may need 33 bits, hence WIDE.
#define DEQUANTIZE(NAME, TYPE, WIDE)                                                                    \
  void NAME(const TYPE *restrict x, float *restrict y, const float *restrict scales, const int32_t *restrict zeros, \
            int32_t channels, int32_t inner, int32_t begin, int32_t end) {                              \
    EACH_RUN(const WIDE scale = scales[channel], zero = (WIDE)zeros[channel];                           \
             for (int32_t i = first; i < last; i++) y[i] = (float)(((WIDE)x[i] - zero) * scale);)       \
  }

#define QUANTIZE(NAME, TYPE, LOWEST, HIGHEST)                                                           \
  void NAME(const float *restrict x, TYPE *restrict y, const float *restrict inverses, const int32_t *restrict zeros, \
            int32_t channels, int32_t inner, int32_t begin, int32_t end) {                              \
    EACH_RUN(const float inverse = inverses[channel]; const double zero = zeros[channel];               \
             NO_UNROLL for (int32_t i = first; i < last; i++) {                                         \
               const float nearest = __builtin_rintf(x[i] * inverse);                                   \
               double v = nearest == nearest ? nearest + zero : zero;                                   \
               v = v < (LOWEST) ? (LOWEST) : v > (HIGHEST) ? (HIGHEST) : v;                             \
               y[i] = (TYPE)(int32_t)v;                                                                 \
             })                                                                                         \
  }

DEQUANTIZE(i8_dequantize, int8_t, float)
DEQUANTIZE(u8_dequantize, uint8_t, float)
DEQUANTIZE(i16_dequantize, int16_t, float)
DEQUANTIZE(i32_dequantize, int32_t, double)
QUANTIZE(i8_quantize, int8_t, -128.0, 127.0)
QUANTIZE(u8_quantize, uint8_t, 0.0, 255.0)
QUANTIZE(i16_quantize, int16_t, -32768.0, 32767.0)
QUANTIZE(i32_quantize, int32_t, -2147483648.0, 2147483647.0)
