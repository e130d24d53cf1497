// Between float32 and stored integers, one scale for the tensor or one for each channel.
//
//   dequantize  y = (x - zero) * scale
//   quantize    y = clamp(round(x * inverse) + zero), ties to even; inverse = 1 / scale; NaN gives the zero point
//
//   scales, inverses [channels] float32      zeros [channels] int32       read
//   channel of element i: i / inner % channels. Needs: x and y do not overlap.
// Units: elements.
#include "requantize.h"

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

#define QUANTIZE_EACH(TYPE, LOWEST, HIGHEST, FROM)                                                      \
  NO_UNROLL for (int32_t i = FROM; i < last; i++) {                                                     \
    const float nearest = __builtin_rintf(x[i] * inverse);                                              \
    double v = nearest == nearest ? nearest + zero : zero;                                              \
    v = v < (LOWEST) ? (LOWEST) : v > (HIGHEST) ? (HIGHEST) : v;                                        \
    y[i] = (TYPE)(int32_t)v;                                                                            \
  }

#define QUANTIZE(NAME, TYPE, LOWEST, HIGHEST)                                                           \
  void NAME(const float *restrict x, TYPE *restrict y, const float *restrict inverses, const int32_t *restrict zeros, \
            int32_t channels, int32_t inner, int32_t begin, int32_t end) {                              \
    EACH_RUN(const float inverse = inverses[channel]; const double zero = zeros[channel];               \
             QUANTIZE_EACH(TYPE, LOWEST, HIGHEST, first))                                               \
  }

// Bytes, eight at a time. A zero point that is no byte leaves bounds that floats may not hold: those go one by one.
#define QUANTIZE_BYTES(NAME, TYPE, LOWEST, HIGHEST, FLIP)                                               \
  void NAME(const float *restrict x, TYPE *restrict y, const float *restrict inverses, const int32_t *restrict zeros, \
            int32_t channels, int32_t inner, int32_t begin, int32_t end) {                              \
    EACH_RUN(const float inverse = inverses[channel]; const double zero = zeros[channel];               \
             int32_t at = first; const int32_t is_byte = zero >= (LOWEST) && zero <= (HIGHEST);         \
             const int32_t whole = is_byte ? zeros[channel] : 0;                                        \
             const Stored stored = stored_as((LOWEST) - whole, (HIGHEST) - whole, whole + (FLIP), FLIP); \
             NO_UNROLL for (; is_byte && at + 8 <= last; at += 8) {                                     \
               const v4i low = stored_real(v4f_load(x + at) * inverse, &stored);                        \
               const v4i high = stored_real(v4f_load(x + at + 4) * inverse, &stored);                   \
               store_eight((uint8_t *)y + at, stored_bytes(low, high, &stored));                        \
             }                                                                                          \
             QUANTIZE_EACH(TYPE, LOWEST, HIGHEST, at))                                                  \
  }

DEQUANTIZE(i8_dequantize, int8_t, float)
DEQUANTIZE(u8_dequantize, uint8_t, float)
DEQUANTIZE(i16_dequantize, int16_t, float)
DEQUANTIZE(i32_dequantize, int32_t, double)
QUANTIZE_BYTES(i8_quantize, int8_t, -128.0, 127.0, 0x80)
QUANTIZE_BYTES(u8_quantize, uint8_t, 0.0, 255.0, 0)
QUANTIZE(i16_quantize, int16_t, -32768.0, 32767.0)
QUANTIZE(i32_quantize, int32_t, -2147483648.0, 2147483647.0)
