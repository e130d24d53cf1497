// f32 1x1 convolution whose weights are mostly zero, NHWC: P pixels by one output in registers, four outputs at a time.
//
//   x        [pixels, ci]       read
//   w        f32_pack_sparse_weights's words for P pixels
//   y        [pixels, co]       written in full
//   near     channels that are brought together at a time: a block of them stays in the first cache
//   sums     outputs whose sums are kept: 4, or all, rounded up to 4, if near < ci
//   scratch  [ceil(pixels/P)][near + sums][P]  written: each thread uses the part of its first block
//   Needs: near is a multiple of 4; y overlaps neither x, w nor the residual.
//
// Lanes must run along pixels, or zeros could not be skipped one by one: a block of pixels is transposed first, and
// results are transposed back four outputs at a time.
// Units: blocks of P pixels, ceil(pixels / P).
#include "epilogue.h"

enum { P = 28, PV = P / 4 };

typedef struct {
  const float *restrict x;
  const int32_t *restrict w;
  float *restrict y;
  int32_t pixels, ci, co, near;
  Epilogue e;
} Sparse;

INLINE void transpose(v4f v[4]) {
  const v4f a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const v4f c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

// to[channel][P] = channels [channel, channel + near) of P pixels from `first` on; past the last one it is repeated.
static void gather_block(float *to, const Sparse *s, int32_t first, int32_t channel) {
  const int32_t count = s->ci - channel < s->near ? s->ci - channel : s->near;
  for (int32_t p = 0; p < P; p += 4) {
    const float *row[4];
    UNROLL for (int i = 0; i < 4; i++) {
      const int32_t pixel = first + p + i < s->pixels ? first + p + i : s->pixels - 1;
      row[i] = s->x + pixel * s->ci + channel;
    }
    for (int32_t c = 0; c < count; c += 4) {
      v4f v[4];
      UNROLL for (int i = 0; i < 4; i++) v[i] = v4f_load(row[i] + c);
      transpose(v);
      UNROLL for (int i = 0; i < 4; i++) v4f_store(to + (c + i) * P + p, v[i]);
    }
  }
}

// sums[P] += the entries of one output; sums begin with the bias where there is one here.
INLINE void add_entries(float *sums, const float *block, const int32_t *entry, const int32_t *end, const float *bias) {
  v4f acc[PV];
  if (bias) {
    UNROLL for (int v = 0; v < PV; v++) acc[v] = v4f_load_splat(bias);
  } else {
    UNROLL for (int v = 0; v < PV; v++) acc[v] = v4f_load(sums + 4 * v);
  }
  NO_UNROLL for (; entry != end; entry += 2) {
    const float *p = block + entry[0];
    const v4f weight = v4f_load_splat((const float *)entry + 1);
    UNROLL for (int v = 0; v < PV; v++) {
      PIN(p);
      acc[v] = v4f_madd(weight, v4f_load(p + 4 * v), acc[v]);
      PIN(acc[v]);
    }
  }
  UNROLL for (int v = 0; v < PV; v++) v4f_store(sums + 4 * v, acc[v]);
}

// Stores four outputs of a whole block that end in a clamp: the usual case, without a question for each pixel.
INLINE void store_clamped(const float *sums, float *y, int32_t y_step, const float *residual, int32_t residual_step,
                          float lo, float hi) {
  const v4f least = v4f_splat(lo), most = v4f_splat(hi);
  UNROLL for (int p = 0; p < P; p += 4) {
    v4f rows[4];
    UNROLL for (int i = 0; i < 4; i++) rows[i] = v4f_load(sums + i * P + p);
    transpose(rows);
    UNROLL for (int i = 0; i < 4; i++) {
      const v4f sum = residual ? rows[i] + v4f_load(residual + (p + i) * residual_step) : rows[i];
      v4f_store(y, v4f_clamp(sum, least, most));
      y += y_step;
    }
  }
}

// Ends four outputs of the block and stores them pixel by pixel.
INLINE void store_outputs(const float *sums, const Sparse *s, int32_t first, int32_t channel) {
  const Epilogue *e = &s->e;
  const int32_t count = s->pixels - first < P ? s->pixels - first : P;
  const int32_t channels = s->co - channel < 4 ? s->co - channel : 4;
  if (LIKELY(count == P && channels == 4 && e->act == ACTIVATION_CLAMP && ends_in_registers(e, channel, 4))) {
    float *y = s->y + first * s->co + channel;
    if (e->residual && channel < e->residual_c) {
      const float *residual = e->residual + first * e->residual_c + channel;
      store_clamped(sums, y, s->co, residual, e->residual_c, e->lo, e->hi);
    } else {
      store_clamped(sums, y, s->co, 0, 0, e->lo, e->hi);
    }
    return;
  }
  for (int32_t p = 0; p < count; p++) {
    v4f sum = {sums[p], sums[P + p], sums[2 * P + p], sums[3 * P + p]};
    if (e->residual) sum += residual_at(e, first + p, channel);
    const v4f result = activate(sum, e, channel);
    float *y = s->y + (first + p) * s->co + channel;
    if (channels == 4) {
      v4f_store(y, result);
    } else {
      v4f_store_first(y, result, channels);
    }
  }
}

void f32_sparse_conv2d_nhwc_28x4(const float *restrict x, const int32_t *restrict w, float *restrict y,
                                 float *restrict scratch, int32_t pixels, int32_t ci, int32_t co, int32_t near,
                                 int32_t sums, const float *residual, int32_t residual_c, const float *slope,
                                 int32_t act, float lo, float hi, int32_t begin, int32_t end) {
  const Sparse s = {x, w, y, pixels, ci, co, near, {residual, residual_c, slope, act, lo, hi}};
  const int32_t co4 = (co + 3) / 4 * 4, rounds = (ci + near - 1) / near, step = sums > 4 ? P : 0;
  const float *biases = (const float *)(w + rounds * co4 + 1);
  const int32_t *entries = w + (rounds + 1) * co4 + 1;
  float *block = scratch + begin * (near + sums) * P, *kept = block + near * P;
  for (int32_t unit = begin; unit < end; unit++) {
    // The last block moves back over pixels that are done already, so that it is whole.
    const int32_t first = pixels - unit * P >= P || pixels < P ? unit * P : pixels - P;
    const int32_t *start = w;
    for (int32_t round = 0; round < rounds; round++) {
      gather_block(block, &s, first, round * near);
      for (int32_t channel = 0; channel < co; channel += 4, start += 4) {
        float *four = kept + channel * step;
        for (int32_t i = 0; i < 4; i++) {
          const float *bias = round ? 0 : biases + channel + i;
          add_entries(four + i * P, block, entries + 2 * start[i], entries + 2 * start[i + 1], bias);
        }
        if (round + 1 == rounds) store_outputs(four, &s, first, channel);
      }
    }
  }
}
