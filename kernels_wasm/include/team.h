// Threads that walk one program together. Included by the generated dispatch.c, which defines step().
//
// Every thread walks all records and does its share of each; a barrier stands between records whose
// work is shared. Within a program threads spin, then nap; between programs they sleep. Every wait is
// bounded: whoever waits longer than the deadline poisons the team, and all of it leaves.
#pragma once

#include <stdint.h>

#if defined(__wasm_atomics__)

#define SPINS 150000        // loads before a nap: some 100 microseconds; a nap costs more than a step of a small model
#define JOB_SPINS 400000    // the same between programs: the pause of a caller that runs one after the other
#define NAP_NS 2000000      // 2 ms, in nanoseconds
#define LINE 16             // words of a cache line

// Lies in shared memory, zeroed by the host, 64-byte aligned. One line for each word that is fought over.
typedef struct {
  uint32_t arrived, a[LINE - 1];   // threads at the barrier
  uint32_t phase, b[LINE - 1];     // barriers passed
  uint32_t napping, c[LINE - 1];   // threads asleep at the barrier
  uint32_t job, d[LINE - 1];       // programs started; workers sleep on it
  uint32_t poisoned, naps_allowed; // someone gave up; naps that make the deadline
  int32_t program, first, count, threads;
  uint32_t e[LINE - 6];
} Team;

#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

// 1 once all threads are here, 0 if the team is poisoned.
static int barrier(Team *t, uint32_t threads, uint32_t *phase) {
  const uint32_t before = *phase, next = before + 1;
  *phase = next;
  if (ADD(&t->arrived, 1) + 1 == threads) {
    STORE(&t->arrived, 0);
    STORE(&t->phase, next);
    if (LOAD(&t->napping)) __builtin_wasm_memory_atomic_notify((int32_t *)&t->phase, threads);
    return 1;
  }
  for (int32_t i = 0; i < SPINS; i++) {
    if (LOAD(&t->phase) == next) return 1;
  }
  ADD(&t->napping, 1);
  for (uint32_t naps = 0; LOAD(&t->phase) != next; naps++) {
    if (naps > t->naps_allowed) STORE(&t->poisoned, 1);
    if (LOAD(&t->poisoned)) return 0;
    __builtin_wasm_memory_atomic_wait32((int32_t *)&t->phase, (int32_t)before, NAP_NS);
  }
  ADD(&t->napping, (uint32_t)-1);
  return 1;
}

// Walks records first..first+count-1 with the others. 1 if all is done, 0 if the team is poisoned.
static int walk(Team *t, const int32_t *program, int32_t first, int32_t count, int32_t thread, int32_t threads,
                uint32_t *phase) {
  const int32_t *p = find(program, first);
  const int32_t last = first + count < program[2] ? first + count : program[2];
  for (int32_t i = first; i < last; i++) {
    const int32_t shared = p[2] != 0;
    step(p, thread, threads);
    p += p[1];
    const int32_t next_shared = i + 1 == last || p[2] != 0;
    if ((shared || next_shared) && !barrier(t, (uint32_t)threads, phase)) return 0;
  }
  return 1;
}

// Thread 0: starts the others on the records and works with them. 0 if done, 1 if a thread did not answer in time.
int32_t team_run(Team *t, const int32_t *program, int32_t first, int32_t count, int32_t threads) {
  if (LOAD(&t->poisoned)) return 1;
  check(program);
  t->program = (int32_t)program, t->first = first, t->count = count, t->threads = threads;
  uint32_t phase = LOAD(&t->phase);
  ADD(&t->job, 1);
  __builtin_wasm_memory_atomic_notify((int32_t *)&t->job, (uint32_t)threads);
  return walk(t, program, first, count, 0, threads, &phase) ? 0 : 1;
}

// A worker: walks every program that thread 0 starts, until the team is poisoned or dismissed (program 0).
void team_work(Team *t, int32_t thread, int32_t jobs_seen) {
  uint32_t seen = (uint32_t)jobs_seen;
  for (;;) {
    for (int32_t i = 0; i < JOB_SPINS && LOAD(&t->job) == seen; i++) {
    }
    while (LOAD(&t->job) == seen) {
      if (LOAD(&t->poisoned)) return;
      __builtin_wasm_memory_atomic_wait32((int32_t *)&t->job, (int32_t)seen, -1);
    }
    seen++;
    if (LOAD(&t->poisoned) || t->program == 0) return;
    uint32_t phase = LOAD(&t->phase);
    if (!walk(t, (const int32_t *)t->program, t->first, t->count, thread, t->threads, &phase)) return;
  }
}

// Sends every worker home; they must not be in a program.
void team_dismiss(Team *t) {
  t->program = 0;
  ADD(&t->job, 1);
  __builtin_wasm_memory_atomic_notify((int32_t *)&t->job, 0xffffffffu);
}

#endif
