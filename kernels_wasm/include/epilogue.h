// What ends a convolution or a product: y = act(sum + residual), the bias already in the sum.
//
//   residual    [pixels, residual_c]  or 0; channels from residual_c on count as zero
//   slope       [channels], read when act is ACTIVATION_PRELU
//   lo, hi      bounds of ACTIVATION_CLAMP; -inf and inf for none. Of ACTIVATION_PRELU lo is one too, which dense
//               convolutions know of windows of more than a pixel (conv2d_tile.h, winograd_panel.h)
#pragma once

#include "lanes.h"
#include "math.h"
#include "simd.h"

typedef struct {
  const float *residual;
  int32_t residual_c;
  const float *slope;
  int32_t act;
  float lo, hi;
} Epilogue;

INLINE v4f prelu(v4f v, v4f slope) { return v4f_select(v < v4f_splat(0.0f), v * slope, v); }

// The same with the lower bound, where a kernel knows it.
INLINE v4f bounded_prelu(v4f v, v4f slope, const Epilogue *e) { return v4f_max(prelu(v, slope), v4f_splat(e->lo)); }

INLINE v4f hard_swish(v4f v) {
  const v4f gate = v4f_clamp(v + v4f_splat(3.0f), v4f_splat(0.0f), v4f_splat(6.0f));
  return v * gate * v4f_splat(1.0f / 6.0f);
}

// The long activations, out of line in f32_unary.c: inlined once a vector of a tile they would be most of its code.
v4f activate_long(v4f v, int32_t act);

// What tiles leave to be done where their sums were stored: a curve, of `columns` floats in each row.
void activate_rows(float *y, int32_t step, int32_t rows, int32_t columns, int32_t act);
INLINE int ends_stored(const Epilogue *e) { return e->act > ACTIVATION_PRELU; }

// One vector of results; `channel` is its first channel.
INLINE v4f activate(v4f v, const Epilogue *e, int32_t channel) {
  switch (e->act) {
    case ACTIVATION_PRELU: return bounded_prelu(v, v4f_load(e->slope + channel), e);
    case ACTIVATION_HARD_SWISH: return hard_swish(v);
    case ACTIVATION_CLAMP: return v4f_clamp(v, v4f_splat(e->lo), v4f_splat(e->hi));
    default: return activate_long(v, e->act);
  }
}

// The residual under one vector, zero where it has no channel.
INLINE v4f residual_at(const Epilogue *e, int32_t pixel, int32_t channel) {
  return v4f_load_lanes(e->residual + pixel * e->residual_c + channel, e->residual_c - channel);
}

// Ends `count` channels of one pixel, any count: reads sums, padded to whole vectors, and writes y.
static __attribute__((unused)) void finish_channels(const float *restrict sums, float *restrict y, int32_t pixel,
                                                    int32_t channel, int32_t count, const Epilogue *e) {
  for (int32_t c = 0; c < count; c += 4) {
    v4f v = v4f_load(sums + c);
    if (e->residual) v += residual_at(e, pixel, channel + c);
    v = activate(v, e, channel + c);
    if (count - c >= 4) {
      v4f_store(y + c, v);
    } else {
      v4f_store_first(y + c, v, count - c);
    }
  }
}

// True if `count` channels from `channel` on can end in registers: the residual lies under all of them or none.
INLINE int ends_in_registers(const Epilogue *e, int32_t channel, int32_t count) {
  return !e->residual || channel + count <= e->residual_c || channel >= e->residual_c;
}
