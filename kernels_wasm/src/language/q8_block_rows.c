// Rows rounded to 15 bits, each 32 elements by a scale of their own: the activations of a product with blocks. An
// element is q * scale. With SIMD q has 16 bits where there are several rows, or no exact products of bytes; else q is
// 128 * high + low, where high is -127 to 127 and low -64 to 63.
//
//   x      [rows, k]  read, k = 32 * blocks
//   y      written: [rows, k] of 16 bits, or [rows, k] high bytes and [rows, k] low ones; [rows, k/32] float scales;
//          [rows, k/16] float sums of what 16 elements stand for
//   place  its second number says how many rows count; 0 = all
//
// Needs: x and y do not overlap. Units: rows.
#include "dots.h"
#include "lanes.h"
#include "small.h"

SMALL void q8_block_rows(const float *restrict x, const int32_t *place, int8_t *restrict y, int32_t rows, int32_t blocks,
                   int32_t begin, int32_t end) {
  int8_t *low = y + 32 * rows * blocks;
  float *scales = (float *)(y + 64 * rows * blocks), *sums = scales + rows * blocks;
#if SIMD
  const int32_t wide = rows > 1 || byte_dots() == BYTES_INEXACT;
#endif
  if (place && place[1] < end) end = place[1] > begin ? place[1] : begin;
  for (int32_t at = begin * blocks; at < end * blocks; at++) {
    const float *from = x + 32 * at;
#if SIMD
    v4f most = v4f_splat(0.0f);
    for (int32_t i = 0; i < 32; i += 4) most = v4f_max(most, v4f_abs(v4f_load(from + i)));
    const float top = FOLD(v4f_max, most)[0];
#else
    float top = 0.0f;
    for (int32_t i = 0; i < 32; i++) top = __builtin_fabsf(from[i]) > top ? __builtin_fabsf(from[i]) : top;
#endif
    const float scale = top / 16256.0f, inverse = top > 0.0f ? 16256.0f / top : 0.0f;
    scales[at] = scale;
    for (int32_t half = 0; half < 2; half++) {
#if SIMD
      v4i q[4];
      for (int32_t i = 0; i < 4; i++) {
        q[i] = v4i_from_f32(v4f_round_even(v4f_load(from + 16 * half + 4 * i) * inverse));
      }
      if (wide) {
        int16_t *to = (int16_t *)y + 32 * at + 16 * half;
        v8s_store(to, v8s_narrow(q[0], q[1]));
        v8s_store(to + 8, v8s_narrow(q[2], q[3]));
        sums[2 * at + half] = scale * (float)v4i_sum(q[0] + q[1] + q[2] + q[3]);
        continue;
      }
      v4i high[4];
      for (int32_t i = 0; i < 4; i++) high[i] = (q[i] + 64) >> 7;
      v16s_store(y + 32 * at + 16 * half, v16s_narrow(v8s_narrow(high[0], high[1]), v8s_narrow(high[2], high[3])));
      for (int32_t i = 0; i < 4; i++) high[i] = q[i] - (high[i] << 7);
      v16s_store(low + 32 * at + 16 * half, v16s_narrow(v8s_narrow(high[0], high[1]), v8s_narrow(high[2], high[3])));
      sums[2 * at + half] = scale * (float)v4i_sum(q[0] + q[1] + q[2] + q[3]);
#else
      int32_t sum = 0;
      for (int32_t i = 16 * half; i < 16 * half + 16; i++) {
        const float q = __builtin_rintf(from[i] * inverse);
        const int32_t whole = i32_from_f32(q), high = (whole + 64) >> 7;
        y[32 * at + i] = (int8_t)high;
        low[32 * at + i] = (int8_t)(whole - high * 128);
        sum += whole;
      }
      sums[2 * at + half] = scale * (float)sum;
#endif
    }
  }
}
