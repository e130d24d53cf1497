// The sums of a depthwise convolution, B neighbouring output pixels by 4 channels, and what ends them.
// Included once per file, after K, S and B are defined. depthwise_tile.h says what the arguments are.
#pragma once

#include "epilogue.h"

#if !SIMD  // four scalars a vector: whole blocks would be too large to ship
#undef B
#define B 2
#endif
#if GATHERS && S == 2
#undef B
#define B 4
#endif

#define COLUMNS ((B - 1) * S + K)
#define BLOCK_SIZE (4 + K * K * 4)

typedef struct {
  const float *restrict x;
  const float *restrict w;
  float *restrict y;
  int32_t ih, iw, c, x_stride, oh, ow, y_stride, pad_top, pad_left;
  int32_t x_pitch, y_pitch;  // from row to row
  Epilogue e;
  int32_t below, above;  // whether ACTIVATION_CLAMP has bounds: a clamp takes the ports that products need
  int32_t curved;        // 1 where a curve is computed of every block that was stored, 2 where it is of every row
  const float *post;     // [pixels, c]  or 0: y = post + result * factor
  float factor;
} Depthwise;

INLINE void set_ending(Depthwise *d) {
  d->below = d->e.lo > -__builtin_inff();
  d->above = d->e.hi < __builtin_inff();
  d->curved = ends_stored(&d->e) ? 1 + (d->y_stride == d->c && d->c % 4 == 0 && !d->e.residual) : 0;
  PIN(d->below);
  PIN(d->above);
  PIN(d->curved);
}

INLINE void end_rows(const Depthwise *d, int32_t row, int32_t rows) {
  if (UNLIKELY(d->curved == 2)) activate_rows(d->y + row * d->ow * d->c, 0, 1, rows * d->ow * d->c, d->e.act);
}

// Ends and stores `count` outputs of the 4 channels from `channel` on.
INLINE void store_block(v4f *acc, const int blocks, const Depthwise *d, float *y, int32_t pixel, int32_t count,
                        int32_t channel) {
  const Epilogue *e = &d->e;
  const int adds = SIMD && e->residual && channel < e->residual_c;
  if (LIKELY(channel + 4 <= d->c && (SIMD ? ends_in_registers(e, channel, 4) : !e->residual))) {
    if (adds) {
      const float *from = e->residual + pixel * e->residual_c + channel;
      UNROLL for (int b = 0; b < blocks; b++) {
        if (b < count) acc[b] += v4f_load(from);
        from += e->residual_c;
      }
    }
    if (e->act == ACTIVATION_CLAMP) {
      if (d->below) {
        const v4f lo = v4f_splat(e->lo);
        UNROLL for (int b = 0; b < blocks; b++) acc[b] = v4f_max(acc[b], lo);
      }
      if (d->above) {
        const v4f hi = v4f_splat(e->hi);
        UNROLL for (int b = 0; b < blocks; b++) acc[b] = v4f_min(acc[b], hi);
      }
    } else if (e->act == ACTIVATION_PRELU) {
      const v4f slope = v4f_load(e->slope + channel);
      UNROLL for (int b = 0; b < blocks; b++) acc[b] = prelu(acc[b], slope);
    }
    if (SIMD && d->post) {
      const float *from = d->post + pixel * d->c + channel;
      const v4f factor = v4f_splat(d->factor);
      UNROLL for (int b = 0; b < blocks; b++) {
        if (b < count) acc[b] = v4f_load(from) + acc[b] * factor;
        from += d->c;
      }
    }
    float *to = y;
    UNROLL for (int b = 0; b < blocks; b++) {
      if (b < count) v4f_store(to, acc[b]);
      to += d->y_stride;
    }
    if (UNLIKELY(d->curved == 1)) activate_rows(y, d->y_stride, count < blocks ? count : blocks, 4, e->act);
    return;
  }
  float sums[B][4];
  UNROLL for (int b = 0; b < blocks; b++) v4f_store(sums[b], acc[b]);
  const int32_t channels = d->c - channel < 4 ? d->c - channel : 4;
  for (int32_t b = 0; b < count; b++) {
    float *to = y + b * d->y_stride;
    finish_channels(sums[b], to, pixel + b, channel, channels, e);
    if (!SIMD || !d->post) continue;
    const float *from = d->post + (pixel + b) * d->c + channel;
    v4f_store_lanes(to, v4f_load(from) + v4f_load(to) * v4f_splat(d->factor), channels);
  }
}
