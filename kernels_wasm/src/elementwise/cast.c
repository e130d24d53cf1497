// Conversions between element types: integers wrap when narrowed, float32 to integer rounds towards zero and
// saturates (NaN gives 0), to bool means "is not zero". float16 stands for its bits.
//
//   x  read       y  written in full
//   Needs: x and y do not overlap, or are the same and of one size.
//
// Units: elements.
#include "half.h"

#define CAST(NAME, FROM, TO, FORMULA)                                                          \
  void NAME(const FROM *restrict from, TO *restrict to, int32_t begin, int32_t end) {          \
    for (int32_t i = begin; i < end; i++) {                                                    \
      const FROM x = from[i];                                                                  \
      to[i] = (TO)(FORMULA);                                                                   \
    }                                                                                          \
  }

// A bit pattern of `from` bits is cut to `to` bits.
CAST(b64_to_b32, uint64_t, uint32_t, x)
CAST(b64_to_b16, uint64_t, uint16_t, x)
CAST(b64_to_b8, uint64_t, uint8_t, x)
CAST(b32_to_b16, uint32_t, uint16_t, x)
CAST(b32_to_b8, uint32_t, uint8_t, x)
CAST(b16_to_b8, uint16_t, uint8_t, x)

// Signed sources extend their sign, unsigned ones zeros.
CAST(i8_to_b16, int8_t, int16_t, x)
CAST(i8_to_b32, int8_t, int32_t, x)
CAST(i8_to_b64, int8_t, int64_t, x)
CAST(i16_to_b32, int16_t, int32_t, x)
CAST(i16_to_b64, int16_t, int64_t, x)
CAST(i32_to_b64, int32_t, int64_t, x)
CAST(u8_to_b16, uint8_t, uint16_t, x)
CAST(u8_to_b32, uint8_t, uint32_t, x)
CAST(u8_to_b64, uint8_t, uint64_t, x)
CAST(u16_to_b32, uint16_t, uint32_t, x)
CAST(u16_to_b64, uint16_t, uint64_t, x)
CAST(u32_to_b64, uint32_t, uint64_t, x)

CAST(i8_to_f32, int8_t, float, x)
CAST(i16_to_f32, int16_t, float, x)
CAST(i32_to_f32, int32_t, float, x)
CAST(i64_to_f32, int64_t, float, x)
CAST(u8_to_f32, uint8_t, float, x)
CAST(u16_to_f32, uint16_t, float, x)
CAST(u32_to_f32, uint32_t, float, x)
CAST(u64_to_f32, uint64_t, float, x)

// `ABOVE` is the first float32 that is too large; the lowest value is exact in float32 or 0.
#define SATURATE(LOWEST, ABOVE, HIGHEST, TYPE) \
  (x >= (ABOVE) ? (HIGHEST) : x > (float)(LOWEST) ? (TYPE)x : x <= (float)(LOWEST) ? (TYPE)(LOWEST) : 0)
CAST(f32_to_i8, float, int8_t, i32_clamp(i32_from_f32(x), -128, 127))
CAST(f32_to_i16, float, int16_t, i32_clamp(i32_from_f32(x), -32768, 32767))
CAST(f32_to_i32, float, int32_t, i32_from_f32(x))
CAST(f32_to_i64, float, int64_t, SATURATE(INT64_MIN, 0x1p63f, INT64_MAX, int64_t))
CAST(f32_to_u8, float, uint8_t, i32_clamp(i32_from_f32(x), 0, 255))
CAST(f32_to_u16, float, uint16_t, i32_clamp(i32_from_f32(x), 0, 65535))
CAST(f32_to_u32, float, uint32_t, SATURATE(0, 0x1p32f, UINT32_MAX, uint32_t))
CAST(f32_to_u64, float, uint64_t, SATURATE(0, 0x1p64f, UINT64_MAX, uint64_t))

CAST(f32_to_bool, float, uint8_t, x != 0)
CAST(b8_to_bool, uint8_t, uint8_t, x != 0)
CAST(b16_to_bool, uint16_t, uint8_t, x != 0)
CAST(b32_to_bool, uint32_t, uint8_t, x != 0)
CAST(b64_to_bool, uint64_t, uint8_t, x != 0)

CAST(f32_is_infinite, float, uint8_t, x - x != x - x && x == x)
CAST(f32_is_nan, float, uint8_t, x != x)
CAST(f32_is_zero, float, uint8_t, x == 0)
CAST(b8_is_zero, uint8_t, uint8_t, x == 0)
CAST(b16_is_zero, uint16_t, uint8_t, x == 0)
CAST(b32_is_zero, uint32_t, uint8_t, x == 0)
CAST(b64_is_zero, uint64_t, uint8_t, x == 0)

CAST(f16_to_f32, uint16_t, float, f32_from_f16(x))
CAST(f32_to_f16, float, uint16_t, f16_from_f32(x))
CAST(f32_round_to_f16, float, float, f32_from_f16(f16_from_f32(x)))
