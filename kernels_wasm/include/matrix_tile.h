// 1x1 convolution in whole tiles, with as few instructions around the inner loop as it takes: where the depth is small
// they are what a tile costs beyond its products. The general tiles of conv2d_panel.h do what is left over: the last
// rows, 5 to 7 of 8 columns, a residual that ends inside a vector. Included once per file, after MR and NR are defined.
//
//   Needs: a depth that is a multiple of 4; finite slopes.
//   Units: as of conv2d_tile.h.
#pragma once

#include "conv2d_panel.h"
#include "tile_order.h"

// acc = bias + the residual's first `vectors` vectors of each row
INLINE void start_sums(v4f acc[MR][NV], const float *w, const float *residual, int32_t step, const int nv,
                       const int vectors) {
  v4f bias[NV];
  UNROLL for (int j = 0; j < nv; j++) bias[j] = v4f_load(w + 4 * j);
  UNROLL for (int r = 0; r < MR; r++) {
    UNROLL for (int j = 0; j < nv; j++) acc[r][j] = j < vectors ? v4f_load(residual + 4 * j) + bias[j] : bias[j];
    residual += step;
    if (vectors) PIN(residual);
  }
}

// acc += a[MR][length] * w[length][NR], its first nv vectors; the weights' end.
INLINE const float *multiply_whole(v4f acc[MR][NV], const float *const rows[MR], const float *w, int32_t length,
                                   const int nv) {
  const float *a[MR];
  UNROLL for (int r = 0; r < MR; r++) a[r] = rows[r];
#if GATHERS
  NO_UNROLL for (int32_t k = length; k > 0; k -= 2) {
    PIN(w);
    UNROLL for (int r = 0; r < MR; r++) PIN(a[r]);
    multiply_two(acc, a, w, nv);
    UNROLL for (int r = 0; r < MR; r++) a[r] += 2;
    w += 2 * NR;
  }
#else
  NO_UNROLL for (int32_t k = length; k > 0; k -= 4) {
    PIN(w);
    UNROLL for (int u = 0; u < 4; u++) {
      v4f b[NV];
      UNROLL for (int j = 0; j < nv; j++) b[j] = v4f_load(w + u * NR + 4 * j);
      UNROLL for (int r = 0; r < MR; r++) {
        PIN(a[r]);
        const v4f s = v4f_load_splat(a[r] + u);
        UNROLL for (int j = 0; j < nv; j++) {
          acc[r][j] = v4f_madd(s, b[j], acc[r][j]);
          PIN(acc[r][j]);
        }
      }
    }
    UNROLL for (int r = 0; r < MR; r++) a[r] += 4;
    w += 4 * NR;
  }
#endif
  return w;
}

// One panel of whole rows: the first nv vectors of its columns, `columns` of them stored. The next panel's weights.
// residual_left: channels of the residual from this panel's first one on.
INLINE const float *run_whole(const Conv *c, const int act, const Ending *ending, const float *const a[MR],
                              const float *w, float *y, const float *residual, int32_t residual_left, int32_t channel,
                              int32_t columns, const int nv) {
  v4f acc[MR][NV];
  if (residual_left <= 0) {
    start_sums(acc, w, residual, 0, nv, 0);
  } else if (nv == 1 || residual_left == 4) {
    start_sums(acc, w, residual, c->e.residual_c, nv, 1);
  } else {
    start_sums(acc, w, residual, c->e.residual_c, nv, nv);
  }
  w = multiply_whole(acc, a, w + NR, c->ci, nv);
  activate_whole(acc, &c->e, act, ending, channel, nv);
  if (nv == NV || LIKELY(columns == 4)) {
    UNROLL for (int r = 0; r < MR; r++) {
      UNROLL for (int j = 0; j < nv; j++) v4f_store(y + 4 * j, acc[r][j]);
      y += c->y_stride;
      PIN(y);
    }
  } else {
    UNROLL for (int r = 0; r < MR; r++) {
      v4f_store_first(y, acc[r][0], columns);
      y += c->y_stride;
    }
  }
  return w;
}

// The panels [o->panel, stop) of one tile, whatever its size.
static __attribute__((noinline)) void run_left_over(const Conv *c, Order o, int32_t stop) {
  const float *a[MR];
  find_pixels(a, c, &o);
  for (; o.panel < stop; o.panel++) run_panel(c, 1, 0, 0, 0, a, o.tile, o.group, o.panel, panel_of(c, &o));
}

#define LOT 2048  // floats whose curve is computed at once: they are in the first cache still

// Stored sums whose curve is still to be computed, one behind the other.
typedef struct {
  float *from;
  int32_t count;
} Pending;

static __attribute__((noinline)) void end_pending(Pending *p, int32_t act) {
  if (p->count) activate_rows(p->from, 0, 1, p->count, act);
  p->count = 0;
}

// The curve of a tile's columns from `open` on: at once, or with the tiles behind it where they are one run of memory.
static __attribute__((noinline)) void end_columns(Pending *p, const Conv *c, float *open, int32_t columns) {
  if (columns != c->y_stride) {
    end_pending(p, c->e.act);
    activate_rows(open, c->y_stride, MR, columns, c->e.act);
    return;
  }
  if (!p->count || p->from + p->count != open) {
    end_pending(p, c->e.act);
    p->from = open;
  }
  p->count += MR * columns;
  if (p->count >= LOT) end_pending(p, c->e.act);
}

INLINE void run_whole_tiles(const Conv *c, const int act, int32_t begin, int32_t end) {
  Order o = start_order(c, begin);
  const Ending ending = find_ending(&c->e);
  Pending pending = {0, 0};
  const int32_t residual_c = c->e.residual ? c->e.residual_c : 0;
  while (o.unit < end) {
    const int32_t rest = o.first + o.width - o.panel, count = rest < end - o.unit ? rest : end - o.unit;
    const int32_t stop = o.panel + count, pixel = o.tile * MR;
    o.unit += count;
    if (UNLIKELY(pixel + MR > c->pixels)) {
      run_left_over(c, o, stop);
    } else {
      const float *a[MR], *w = panel_of(c, &o), *from = c->x + pixel * c->x_stride + o.group * c->ci;
      UNROLL for (int r = 0; r < MR; r++) {
        a[r] = from;
        from += c->x_stride;
      }
      int32_t left = c->co - o.panel * NR, channel = (o.group + 1) * c->co - left;
      float *y = c->y + pixel * c->y_stride + channel;
      float *open = y;  // from here on a curve is still to be computed
      const float *residual = c->e.residual + pixel * residual_c + channel;
      for (; o.panel < stop; o.panel++) {
        const int32_t residual_left = residual_c - channel;
        if (LIKELY(left >= NR && (residual_left >= NR || residual_left <= 0 || residual_left == 4))) {
          w = run_whole(c, act, &ending, a, w, y, residual, residual_left, channel, NR, NV);
        } else {
          if (left <= 4 && (residual_left >= left || residual_left <= 0)) {
            run_whole(c, act, &ending, a, w, y, residual, residual_left, channel, left, 1);
          } else {
            if (ending.stored) activate_rows(open, c->y_stride, MR, (int32_t)(y - open), c->e.act);
            run_left_over(c, o, o.panel + 1);
            open = y + (left < NR ? left : NR);
          }
          w += o.panel_size;
        }
        y += NR;
        residual += NR;
        channel += NR;
        left -= NR;
      }
      if (act == ACTIVATION_CLAMP && UNLIKELY(ending.stored)) {
        end_columns(&pending, c, open, (int32_t)(y - open) + (left < 0 ? left : 0));
      }
    }
    next_tile(&o);
  }
  if (act == ACTIVATION_CLAMP) end_pending(&pending, c->e.act);
}

// A clamp, or a curve behind the tile.
static __attribute__((noinline)) void run_clamped(const Conv *c, int32_t begin, int32_t end) {
  run_whole_tiles(c, ACTIVATION_CLAMP, begin, end);
}

static __attribute__((noinline)) void run_sloped(const Conv *c, int32_t begin, int32_t end) {
  run_whole_tiles(c, ACTIVATION_PRELU, begin, end);
}
