// One side of a branch: the program goes on behind its steps where the condition says so. What walks programs does that
// (`skipped` in include/program.h); the kernel itself does nothing.
//
//   condition  1 byte   read
// Needs: wanted 0 or 1: the truth for which the side runs. count: steps of the side.
//
// Units: none.
#include <stdint.h>

void b8_skip(const uint8_t *condition, int32_t wanted, int32_t count) {
  (void)condition;
  (void)wanted;
  (void)count;
}
