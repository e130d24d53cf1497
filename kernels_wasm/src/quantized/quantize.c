// Between float32 and stored integers, one scale for the tensor or one for each channel.
//
//   dequantize  y = (x - zero) * scale
//   quantize    y = clamp(round(x * inverse) + zero), ties to even; inverse = 1 / scale; NaN gives the zero point
//
//   scales, inverses [channels] float32      zeros [channels] int32       read
//   channel of element i: i / inner % channels. Needs: x and y do not overlap.
// Units: elements.
#include "lanes.h"
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

// y = clamp(round(x / scale) + zero), ties to even, by a scale and a zero point that a run computes: one float32 each, the
// zero point 0 where there is none. NaN gives 0.
#define QUANTIZE_BY(NAME, TYPE, LOWEST, FLIP)                                                           \
  void NAME(const float *restrict x, const float *restrict scale, const float *restrict zero, TYPE *restrict y, \
            int32_t begin, int32_t end) {                                                               \
    const v4f by = v4f_load_splat(scale), more = zero ? v4f_load_splat(zero) : v4f_splat(0.0f);         \
    const v4f lo = v4f_splat(LOWEST), hi = v4f_splat((LOWEST) + 255.0f);                                \
    NO_UNROLL for (int32_t i = begin; i < end; i += 8) {                                                \
      const float *first = x + i, *second = end - i > 4 ? first + 4 : first;                            \
      const v4i low = v4i_from_f32(v4f_clamp(v4f_round_even(v4f_load(first) / by) + more, lo, hi));     \
      const v4i high = v4i_from_f32(v4f_clamp(v4f_round_even(v4f_load(second) / by) + more, lo, hi));   \
      const v8s shorts = v8s_narrow(low + (FLIP), high + (FLIP));                                       \
      store_bytes((uint8_t *)y + i, v16u_narrow(shorts, shorts) ^ (uint8_t)(FLIP), end - i);            \
    }                                                                                                   \
  }

QUANTIZE_BY(i8_quantize_by, int8_t, -128.0f, 128)
QUANTIZE_BY(u8_quantize_by, uint8_t, 0.0f, 0)

// y = float32(int32(x) - offset) * factor + bias: sums of products of integers as real numbers.
//
//   x  [units, n]  read: int32 where `whole`, or else float32 that are whole numbers
//   offset, bias   [n] int32 and float32, 0 = none        factor  [n], or one number where factor_step is 0
//   y  [units, n]  written; may be x
// Units: rows.
void f32_scale_sums(const void *x, const int32_t *offset, const float *factor, const float *bias, float *y, int32_t n,
                    int32_t whole, int32_t factor_step, int32_t begin, int32_t end) {
  for (int32_t row = begin; row < end; row++) {
    const char *from = (const char *)x + 4 * row * n;
    float *to = y + row * n;
    NO_UNROLL for (int32_t i = 0; i < n; i += 4) {
      v4i sums = whole ? v4i_load(from + 4 * i) : v4i_from_f32(v4f_load(from + 4 * i));
      if (offset) sums -= v4i_load(offset + i);
      v4f v = v4f_from_i32(sums) * (factor_step ? v4f_load(factor + i) : v4f_load_splat(factor));
      if (bias) v += v4f_load(bias + i);
      v4f_store_lanes(to + i, v, n - i);
    }
  }
}
