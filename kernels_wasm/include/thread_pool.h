// Threads that walk one program together. Included by the generated dispatch.c, which defines step() first.
//
// Every thread walks all records and does its share of each; a barrier stands between records whose
// work is shared. Within a program threads spin, then nap; between programs they sleep. Every wait is
// bounded: whoever waits longer than the deadline poisons the pool, and every thread leaves.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "constants.h"
#include "program.h"

#if defined(__wasm_atomics__)

#define SPINS 150000        // loads before a nap: some 100 microseconds; a nap costs more than a step of a small model
#define JOB_SPINS 400000    // the same between programs: the pause of a caller that runs one after the other
#define NAP_NS (1000000ll * THREAD_POOL_NAP_MS)
#define LINE 16             // words of a cache line

// Lies in shared memory, zeroed by the host, 64-byte aligned. One line for each word that is fought over.
typedef struct {
  uint32_t arrived, a[LINE - 1];   // threads at the barrier
  uint32_t phase, b[LINE - 1];     // barriers passed
  uint32_t napping, c[LINE - 1];   // threads asleep at the barrier
  uint32_t job, d[LINE - 1];       // programs started; workers sleep on it
  uint32_t poisoned, max_naps; // someone gave up; naps that make the deadline
  int32_t program, first, count, threads;
  uint32_t e[LINE - 6];
} ThreadPool;
_Static_assert(sizeof(ThreadPool) <= THREAD_POOL_BYTES, "the host reserves too little");
_Static_assert(offsetof(ThreadPool, poisoned) == 4 * THREAD_POOL_POISONED_WORD, "the host writes this word");
_Static_assert(offsetof(ThreadPool, max_naps) == 4 * THREAD_POOL_MAX_NAPS_WORD, "the host writes this word");

#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

// 1 once all threads are here, 0 if the pool is poisoned.
static int barrier(ThreadPool *pool, uint32_t threads, uint32_t *phase) {
  const uint32_t before = *phase, next = before + 1;
  *phase = next;
  if (ADD(&pool->arrived, 1) + 1 == threads) {
    STORE(&pool->arrived, 0);
    STORE(&pool->phase, next);
    if (LOAD(&pool->napping)) __builtin_wasm_memory_atomic_notify((int32_t *)&pool->phase, threads);
    return 1;
  }
  for (int32_t i = 0; i < SPINS; i++) {
    if (LOAD(&pool->phase) == next) return 1;
  }
  ADD(&pool->napping, 1);
  for (uint32_t naps = 0; LOAD(&pool->phase) != next; naps++) {
    if (naps > pool->max_naps) STORE(&pool->poisoned, 1);
    if (LOAD(&pool->poisoned)) return 0;
    __builtin_wasm_memory_atomic_wait32((int32_t *)&pool->phase, (int32_t)before, NAP_NS);
  }
  ADD(&pool->napping, (uint32_t)-1);
  return 1;
}

// Walks records first..first+count-1 with the others. 1 if all is done, 0 if the pool is poisoned.
static int walk(ThreadPool *pool, const int32_t *program, int32_t first, int32_t count, int32_t thread, int32_t threads,
                uint32_t *phase) {
  const int32_t *p = find(program, first);
  const int32_t last = behind(program, first, count);
  for (int32_t i = first; i < last; i++) {
    const int32_t shared = p[2] > 0;
    step(p, thread, threads);
    p += p[1];
    const int32_t next_shared = i + 1 == last || p[2] > 0;
    if ((shared || next_shared) && !barrier(pool, (uint32_t)threads, phase)) return 0;
  }
  return 1;
}

// Whether the threads have anything to share in these records.
static int any_shared(const int32_t *program, int32_t first, int32_t count) {
  const int32_t *p = find(program, first);
  const int32_t last = behind(program, first, count);
  for (int32_t i = first; i < last; i++, p += p[1]) {
    if (p[2] > 0) return 1;
  }
  return 0;
}

// Thread 0: starts the others on the records and works with them, or does all where nothing is shared. 0 if done, 1 if
// a thread did not answer in time.
int32_t thread_pool_run(ThreadPool *pool, const int32_t *program, int32_t first, int32_t count, int32_t threads) {
  if (LOAD(&pool->poisoned)) return 1;
  check(program);
  if (!any_shared(program, first, count)) {
    run(program, first, count, 0, 1);
    return 0;
  }
  pool->program = (int32_t)program, pool->first = first, pool->count = count, pool->threads = threads;
  uint32_t phase = LOAD(&pool->phase);
  ADD(&pool->job, 1);
  __builtin_wasm_memory_atomic_notify((int32_t *)&pool->job, (uint32_t)threads);
  return walk(pool, program, first, count, 0, threads, &phase) ? 0 : 1;
}

// A worker: walks every program that thread 0 starts, until the pool is poisoned or dismissed (program 0).
void thread_pool_work(ThreadPool *pool, int32_t thread, int32_t jobs_seen) {
  uint32_t seen = (uint32_t)jobs_seen;
  for (;;) {
    for (int32_t i = 0; i < JOB_SPINS && LOAD(&pool->job) == seen; i++) {
    }
    while (LOAD(&pool->job) == seen) {
      if (LOAD(&pool->poisoned)) return;
      __builtin_wasm_memory_atomic_wait32((int32_t *)&pool->job, (int32_t)seen, -1);
    }
    seen++;
    if (LOAD(&pool->poisoned) || pool->program == 0) return;
    uint32_t phase = LOAD(&pool->phase);
    if (!walk(pool, (const int32_t *)pool->program, pool->first, pool->count, thread, pool->threads, &phase)) return;
  }
}

// Sends every worker home; they must not be in a program.
void thread_pool_dismiss(ThreadPool *pool) {
  pool->program = 0;
  ADD(&pool->job, 1);
  __builtin_wasm_memory_atomic_notify((int32_t *)&pool->job, 0xffffffffu);
}

#endif
