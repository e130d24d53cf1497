// A plan's program: a header, then records. step() and SKIP come from the generated dispatch.c.
#pragma once

#include <stdint.h>

#include "constants.h"

static void check(const int32_t *program) {
  if (program[0] != PROGRAM_MAGIC || program[1] != PROGRAM_VERSION) __builtin_trap();
}

// The record with this number.
static const int32_t *find(const int32_t *program, int32_t number) {
  const int32_t *p = program + PROGRAM_HEADER_WORDS;
  for (int32_t i = 0; i < number && i < program[2]; i++) p += p[1];
  return p;
}

// One past the number of the last of these records.
static int32_t behind(const int32_t *program, int32_t first, int32_t count) {
  return first + count < program[2] ? first + count : program[2];
}

// Whether threads share the record's work.
static int is_shared(const int32_t *p) { return p[2] > 1 && p[3] > 0; }

// Where part number `part` of `parts` begins.
static int32_t begin_of(int32_t units, int32_t part, int32_t parts) { return (int32_t)((int64_t)units * part / parts); }

// How many records behind this one are left out: those of a side of a branch that the condition does not choose.
static int32_t skipped(const int32_t *p) {
  if (p[0] != SKIP) return 0;
  const int32_t *args = p + PROGRAM_RECORD_WORDS;  // of b8_skip
  const int32_t truth = *(const uint8_t *)args[0] != 0;
  return truth == args[1] ? 0 : args[2];
}

void run(const int32_t *program, int32_t first, int32_t count, int32_t thread, int32_t threads) {
  check(program);
  const int32_t *p = find(program, first);
  const int32_t last = behind(program, first, count);
  int32_t left_out = 0;
  for (int32_t i = first; i < last; i++, p += p[1]) {
    if (left_out > 0) {
      left_out--;
    } else if (is_shared(p)) {
      step(p, begin_of(p[2], thread, threads), begin_of(p[2], thread + 1, threads));
    } else if (!(left_out = skipped(p)) && thread == 0) {
      step(p, 0, p[2]);
    }
  }
}
