// One kernel for each of many small products, in one step: a batch of thousands would be as many records of a program.
//
//   a, b, y  the inner kernel's pointers that move: for product i by what the nest says, in bytes    b, a read; y written
//   c, d, e  its pointers that stay, or none   read
//   call     int32: where a, b, c, d, e and y stand among its arguments (past their end where it has no such one), then its
//            record as in a program, pointers left out                                                 read
//   nest     int32: the loop nest of include/walk.h over products; strides of a, b, y in bytes         read
// Needs: what the inner kernel needs; products write apart from each other.
//
// Units: products.
#include "walk.h"

enum { POINTERS = 6, MAX_WORDS = 64 };  // of a record; the widest kernel has 30 arguments

void step(const int32_t *p, int32_t begin, int32_t end);

void each_product(const char *a, const char *b, const char *c, const char *d, const char *e, char *y,
                  const int32_t *call, const int32_t *nest, int32_t y_bytes, int32_t begin, int32_t end) {
  (void)y_bytes;
  const int32_t *at = call, *from = call + POINTERS;
  int32_t record[MAX_WORDS];
  if (from[1] >= MAX_WORDS) __builtin_trap();
  for (int32_t i = 0; i < from[1]; i++) record[i] = from[i];
  int32_t *args = record + PROGRAM_RECORD_WORDS;
  args[at[2]] = (int32_t)c;
  args[at[3]] = (int32_t)d;
  args[at[4]] = (int32_t)e;
  for (int32_t i = begin; i < end; i++) {
    Walk w;
    walk_start(&w, nest, 3, i);
    args[at[0]] = (int32_t)(a + w.offset[0]);
    args[at[1]] = (int32_t)(b + w.offset[1]);
    args[at[5]] = (int32_t)(y + w.offset[2]);
    step(record, 0, record[2]);
  }
}
