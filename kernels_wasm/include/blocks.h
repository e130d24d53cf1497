// Weights of language models as GGUF files hold them: blocks of 32 or 256 with their scales. Every type comes apart into
// 32 whole numbers q and, for each half of them, a scale d and an offset m: a weight is d*q + m.
//
//   type   BLOCKS_<NAME>, the file's own number of it; the name's floats (F32, F16, BF16) have no q
//   row    the first byte of a row of weights; `at` counts the row's blocks of 32
//
// q is 0 to 63, of Q8_0 0 to 255. Source: the block layouts of the GGUF format.
#pragma once

#include "half.h"
#include "small.h"

typedef struct {
  uint8_t q[32];
  float d[2], m[2];
} Block;

INLINE int blocks_are_floats(int32_t type) { return type == BLOCKS_F32 || type == BLOCKS_F16 || type == BLOCKS_BF16; }

SMALL_PART float blocks_half(const uint8_t *p) { return f32_from_f16((uint16_t)(p[0] | p[1] << 8)); }

// Bytes of 32 weights, of K types of 256.
SMALL_PART int32_t blocks_bytes(int32_t type) {
  switch (type) {
    case BLOCKS_F32: return 128;
    case BLOCKS_F16: case BLOCKS_BF16: return 64;
    case BLOCKS_Q4_0: return 18;
    case BLOCKS_Q4_1: return 20;
    case BLOCKS_Q5_0: return 22;
    case BLOCKS_Q5_1: return 24;
    case BLOCKS_Q8_0: return 34;
    case BLOCKS_Q4_K: return 144;
    case BLOCKS_Q5_K: return 176;
    default: return 210;
  }
}

INLINE int32_t blocks_row_bytes(int32_t type, int32_t k) {
  const int32_t bytes = blocks_bytes(type);
  return type >= BLOCKS_Q4_K && type <= BLOCKS_Q6_K ? k / 256 * bytes : k / 32 * bytes;
}

// The low or the high halves of bytes, and a fifth bit of each.
INLINE void blocks_nibbles(uint8_t *q, const uint8_t *from, int32_t count, int32_t shift) {
  for (int32_t i = 0; i < count; i++) q[i] = from[i] >> shift & 15;
}

INLINE void blocks_small(int32_t type, const uint8_t *p, Block *b) {
  const int with_minimum = type == BLOCKS_Q4_1 || type == BLOCKS_Q5_1, five = type >= BLOCKS_Q5_0;
  b->d[0] = b->d[1] = blocks_half(p);
  b->m[0] = b->m[1] = with_minimum ? blocks_half(p + 2) : b->d[0] * (five ? -16.0f : -8.0f);
  const uint8_t *bits = p + (with_minimum ? 4 : 2), *from = bits + (five ? 4 : 0);
  blocks_nibbles(b->q, from, 16, 0);
  blocks_nibbles(b->q + 16, from, 16, 4);
  if (!five) return;
  for (int32_t i = 0; i < 32; i++) b->q[i] |= (bits[i / 8] >> i % 8 & 1) << 4;
}

INLINE void blocks_k(int32_t type, const uint8_t *p, int32_t j, Block *b) {
  const uint8_t *s = p + 4;
  const int32_t scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int32_t minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
  b->d[0] = b->d[1] = blocks_half(p) * (float)scale;
  b->m[0] = b->m[1] = -blocks_half(p + 2) * (float)minimum;
  const int five = type == BLOCKS_Q5_K;
  blocks_nibbles(b->q, p + (five ? 48 : 16) + j / 2 * 32, 32, j % 2 * 4);
  if (!five) return;
  for (int32_t i = 0; i < 32; i++) b->q[i] |= (p[16 + i] >> j & 1) << 4;
}

INLINE void blocks_q6(const uint8_t *p, int32_t j, Block *b) {
  const int32_t half = j / 4, quarter = j % 4;
  const int8_t *scales = (const int8_t *)(p + 192) + 8 * half + 2 * quarter;
  const uint8_t *high = p + 128 + 32 * half;
  blocks_nibbles(b->q, p + 64 * half + quarter % 2 * 32, 32, quarter / 2 * 4);
  for (int32_t i = 0; i < 32; i++) b->q[i] |= (high[i] >> 2 * quarter & 3) << 4;
  const float d = blocks_half(p + 208);
  for (int32_t i = 0; i < 2; i++) {
    b->d[i] = d * (float)scales[i];
    b->m[i] = -32.0f * b->d[i];
  }
}

SMALL_PART void blocks_open(int32_t type, const uint8_t *row, int32_t at, Block *b) {
  const int32_t bytes = blocks_bytes(type);
  if (type == BLOCKS_Q8_0) {
    const uint8_t *p = row + at * bytes;
    b->d[0] = b->d[1] = blocks_half(p);
    b->m[0] = b->m[1] = -128.0f * b->d[0];
    for (int32_t i = 0; i < 32; i++) b->q[i] = p[2 + i] ^ 128;
  } else if (type == BLOCKS_Q6_K) {
    blocks_q6(row + at / 8 * bytes, at % 8, b);
  } else if (type >= BLOCKS_Q4_K) {
    blocks_k(type, row + at / 8 * bytes, at % 8, b);
  } else {
    blocks_small(type, row + at * bytes, b);
  }
}

// 32 weights as floats.
SMALL_PART void blocks_floats(int32_t type, const uint8_t *row, int32_t at, float *y) {
  if (!blocks_are_floats(type)) {
    Block b;
    blocks_open(type, row, at, &b);
    for (int32_t i = 0; i < 32; i++) {
      const int eight = type == BLOCKS_Q8_0;  // whose offset would cost digits
      y[i] = b.d[i / 16] * (float)(b.q[i] - 128 * eight) + (eight ? 0.0f : b.m[i / 16]);
    }
    return;
  }
  const uint8_t *p = row + at * blocks_bytes(type);
  for (int32_t i = 0; i < 32; i++) {
    if (type == BLOCKS_F16) {
      y[i] = blocks_half(p + 2 * i);
    } else if (type == BLOCKS_BF16) {
      y[i] = __builtin_bit_cast(float, (uint32_t)(p[2 * i] | p[2 * i + 1] << 8) << 16);
    } else {
      y[i] = __builtin_bit_cast(float, *(const uint32_t *)(p + 4 * i));
    }
  }
}
