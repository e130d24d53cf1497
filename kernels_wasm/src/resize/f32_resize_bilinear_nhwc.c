// f32 bilinear resampling, NHWC.
//
//   x  [n, ih, iw, c]  read
//   y  [n, oh, ow, c]  written in full
//   how: RESAMPLE_PLAIN, RESAMPLE_CORNERS or RESAMPLE_HALF_PIXEL of resample.h.  Needs: y does not overlap x.
//
// A row that becomes wider is mixed vertically first: two input rows into one, then two pixels of that into one. Of one
// channel in an image that becomes higher too, both input rows are widened first, once for all rows between them: 8
// loads of single floats for 4 pixels are what takes longest (a mask of 256x256 to 3840x2160 in wasmtime: 21 -> 9.4 ms).
// By hand: the described kernel takes 1.3 to 3.2 times as long (six shapes, wasmtime, 2026-11-28).
// Units: output rows, n * oh.
#include "resample.h"
#include "simd.h"

#define CHUNK 1024       // output columns whose positions are computed once for all rows
#define ROW_FLOATS 8192  // of a mixed row, or of two rows of CHUNK pixels

typedef struct {
  int32_t low, high;  // offsets of both input pixels in a row
  float weight;       // of the second
} Column;

INLINE v4f mix(v4f a, v4f b, v4f weight) { return v4f_madd(b - a, weight, a); }

INLINE void store_channels(float *y, v4f value, int32_t left) {
  if (LIKELY(left >= 4)) {
    v4f_store(y, value);
  } else {
    v4f_store_first(y, value, left);
  }
}

// to[count] = upper + (lower - upper) * weight; may read and write up to 3 floats more
static void mix_rows(const float *upper, const float *lower, float weight, float *to, int32_t count) {
  const v4f w = v4f_splat(weight);
  for (int32_t i = 0; i < count; i += 4) v4f_store(to + i, mix(v4f_load(upper + i), v4f_load(lower + i), w));
}

INLINE void mix_eight(const float *low, const float *high, float weight, float *y) {
  const v4f w = v4f_splat(weight);
  UNROLL for (int k = 0; k < 8; k += 4) v4f_store(y + k, mix(v4f_load(low + k), v4f_load(high + k), w));
}

// Pixels of one row of one channel, four at a time.
static void mix_line(const float *row, const Column *columns, int32_t count, float *y) {
  int32_t i = 0;
  NO_UNROLL for (; i + 4 <= count; i += 4) {
    const Column a = columns[i], b = columns[i + 1], c = columns[i + 2], d = columns[i + 3];
    const v4f low = {row[a.low], row[b.low], row[c.low], row[d.low]};
    const v4f high = {row[a.high], row[b.high], row[c.high], row[d.high]};
    v4f_store(y + i, mix(low, high, (v4f){a.weight, b.weight, c.weight, d.weight}));
  }
  for (; i < count; i++) y[i] = row[columns[i].low] + (row[columns[i].high] - row[columns[i].low]) * columns[i].weight;
}

// to[count] = upper + (lower - upper) * weight
static void mix_line_rows(const float *upper, const float *lower, float weight, float *to, int32_t count) {
  const v4f w = v4f_splat(weight);
  int32_t i = 0;
  for (; i + 4 <= count; i += 4) v4f_store(to + i, mix(v4f_load(upper + i), v4f_load(lower + i), w));
  for (; i < count; i++) to[i] = upper[i] + (lower[i] - upper[i]) * weight;
}

// Pixels of one mixed row.
static void mix_pixels(const float *row, const Column *columns, int32_t count, float *y, int32_t c) {
  if (c == 8) {  // without a loop inside
    NO_UNROLL for (int32_t i = 0; i < count; i++, y += 8) {
      mix_eight(row + columns[i].low, row + columns[i].high, columns[i].weight, y);
    }
    return;
  }
  for (int32_t i = 0; i < count; i++, y += c) {
    const float *low = row + columns[i].low, *high = row + columns[i].high;
    const v4f w = v4f_splat(columns[i].weight);
    int32_t k = 0;
    NO_UNROLL for (; k + 8 <= c; k += 8) mix_eight(low + k, high + k, columns[i].weight, y + k);
    for (; k < c; k += 4) store_channels(y + k, mix(v4f_load(low + k), v4f_load(high + k), w), c - k);
  }
}

// Pixels straight from two rows.
static void mix_both(const float *upper, const float *lower, float weight, const Column *columns, int32_t count,
                     float *y, int32_t c) {
  const v4f wy = v4f_splat(weight);
  for (int32_t i = 0; i < count; i++, y += c) {
    const int32_t low = columns[i].low, high = columns[i].high;
    const v4f wx = v4f_splat(columns[i].weight);
    for (int32_t k = 0; k < c; k += 4) {
      const v4f top = mix(v4f_load(upper + low + k), v4f_load(upper + high + k), wx);
      const v4f bottom = mix(v4f_load(lower + low + k), v4f_load(lower + high + k), wx);
      store_channels(y + k, mix(top, bottom, wy), c - k);
    }
  }
}

void f32_resize_bilinear_nhwc(const float *restrict x, float *restrict y, int32_t n, int32_t ih, int32_t iw, int32_t c,
                              int32_t oh, int32_t ow, int32_t how, int32_t begin, int32_t end) {
  (void)n;
  Column columns[CHUNK];
  float mixed[ROW_FLOATS + 4], *const wide = mixed + ROW_FLOATS / 2;
  const int lines_first = c == 1 && ow >= iw && oh >= 2 * ih;
  const int rows_first = ow >= iw && (ow <= CHUNK || c == 1) && iw * c <= ROW_FLOATS;
  for (int32_t first = 0; first < ow; first += CHUNK) {
    const int32_t count = ow - first < CHUNK ? ow - first : CHUNK;
    for (int32_t i = 0; i < count; i++) {
      const double at = resample_clamp(resample_position(first + i, iw, ow, how), iw);
      const int32_t low = (int32_t)at;
      columns[i] = (Column){low * c, (low + 1 < iw ? low + 1 : low) * c, (float)(at - low)};
    }
    const float *widened = 0;  // the upper one of the rows in `mixed` and `wide`
    for (int32_t row = begin; row < end; row++) {
      const int32_t image = row / oh;
      const double at = resample_clamp(resample_position(row - image * oh, ih, oh, how), ih);
      const int32_t low = (int32_t)at, high = low + 1 < ih ? low + 1 : low;
      const float *upper = x + (image * ih + low) * iw * c, *lower = x + (image * ih + high) * iw * c;
      float *out = y + (row * ow + first) * c;
      if (lines_first) {
        if (widened != upper) {
          mix_line(upper, columns, count, mixed);
          mix_line(lower, columns, count, wide);
          widened = upper;
        }
        mix_line_rows(mixed, wide, (float)(at - low), out, count);
      } else if (rows_first) {
        mix_rows(upper, lower, (float)(at - low), mixed, iw * c);
        if (c == 1) {
          mix_line(mixed, columns, count, out);
        } else {
          mix_pixels(mixed, columns, count, out, c);
        }
      } else {
        mix_both(upper, lower, (float)(at - low), columns, count, out, c);
      }
    }
  }
}
