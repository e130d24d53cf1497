// Transposes planes of 4-byte elements: y[r, c] = x[c, r], in blocks of 4 by 4.
//
//   x     plane [columns, rows], its rows x_step elements apart       read
//   y     plane [rows, columns], its rows y_step elements apart       written
//   nest  int32  the loop nest of include/walk.h over planes: where each begins in x and in y
//
// Needs: x and y do not overlap. Units: blocks of VECTOR_LANES rows of y, planes * ceil(rows / 4).
#include "walk.h"

INLINE void four_by_four(const uint32_t *x, int32_t x_step, uint32_t *y, int32_t y_step) {
  const v4u a = v4u_load(x), b = v4u_load(x + x_step), c = v4u_load(x + 2 * x_step), d = v4u_load(x + 3 * x_step);
  const v4u ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const v4u ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  v4u_store(y, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  v4u_store(y + y_step, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  v4u_store(y + 2 * y_step, __builtin_shufflevector(ef, gh, 0, 1, 4, 5));
  v4u_store(y + 3 * y_step, __builtin_shufflevector(ef, gh, 2, 3, 6, 7));
}

void b32_transpose(const uint32_t *restrict x, uint32_t *restrict y, const int32_t *restrict nest, int32_t rows,
                   int32_t columns, int32_t x_step, int32_t y_step, int32_t begin, int32_t end) {
  const int32_t blocks = (rows + 3) / 4;
  for (int32_t unit = begin; unit < end; unit++) {
    Walk plane;
    walk_start(&plane, nest, 2, unit / blocks);
    const int32_t row = unit % blocks * 4, count = rows - row < 4 ? rows - row : 4;
    const uint32_t *from = x + plane.offset[0] + row;
    uint32_t *to = y + plane.offset[1] + row * y_step;
    int32_t c = 0;
    if (count == 4) {
      for (; c + 4 <= columns; c += 4) four_by_four(from + c * x_step, x_step, to + c, y_step);
    }
    for (; c < columns; c++) {
      for (int32_t r = 0; r < count; r++) to[r * y_step + c] = from[c * x_step + r];
    }
  }
}
