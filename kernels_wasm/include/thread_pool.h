// Threads that walk one program together. The generated dispatch.c defines step() before it includes this.
//
// A shared step is a turn. Its units are cut into shares, and each thread has a range of them: it takes from the front of
// its own, and from the back of the others' when its own is empty, so that nobody waits for a thread that is late. Who
// finishes the last share does the steps that are not shared and opens the next turn. A range names its turn, so that a
// thread that slept finds nothing to take in one that is over. Within a program threads spin, then nap; between programs
// they sleep. Every wait is bounded: a thread that waits longer than the deadline poisons the pool, and every thread leaves.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "constants.h"
#include "program.h"

#if defined(__wasm_atomics__)

#define SPINS 150000        // loads before a nap: some 100 microseconds; a nap costs more than a step of a small model
#define JOB_SPINS 400000    // the same between programs: the pause of a caller that runs one after the other
#define MOST_HURRY 4        // times that these are halved
#define NAP_NS (1000000ll * THREAD_POOL_NAP_MS)
#define MOST_SHARES 0x7fff  // of a step
#define RANGES 16           // more threads than these begin at a range of another one

// Lies in shared memory, zeroed by the host, 64-byte aligned.
typedef struct {
  uint32_t turn;     // the number of the last turn that was opened; threads that have nothing to do wait for the next one
  uint32_t ended;    // the turn at which the last program ended
  uint32_t done;     // shares of the turn that are finished
  uint32_t shares;   // of the turn
  uint64_t ranges[RANGES];  // turn << 32 | first share << 16 | behind the last share
  const int32_t *record;     // of the turn
  int32_t number, last;      // of the record; of the one behind the program's last
  uint32_t threads, napping; // someone may be asleep
  uint32_t dismissed;
  uint32_t hurry[2];         // of thread 0, as await_turn says
  uint32_t unused[64 - 12 - 2 * RANGES];
  uint32_t poisoned, max_naps;  // someone gave up; naps that make the deadline
} ThreadPool;
_Static_assert(sizeof(ThreadPool) <= THREAD_POOL_BYTES, "the host reserves too little");
_Static_assert(offsetof(ThreadPool, poisoned) == 4 * THREAD_POOL_POISONED_WORD, "the host writes this word");
_Static_assert(offsetof(ThreadPool, max_naps) == 4 * THREAD_POOL_MAX_NAPS_WORD, "the host writes this word");

// Shares that a thread has taken: the first one, and the one behind the last.
typedef struct {
  uint32_t first, behind;
} Taken;

#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

// How many of a range's shares are taken at once: all but the last few of a long step are worth a call of the kernel,
// and what a thread holds when it loses its core is little.
static uint32_t portion(uint32_t left) { return (left + 3) / 4; }

static uint64_t range_of(uint32_t turn, uint32_t first, uint32_t behind) {
  return (uint64_t)turn << 32 | first << 16 | behind;
}

static uint32_t ranges_of(const ThreadPool *pool) { return pool->threads < RANGES ? pool->threads : RANGES; }

// Takes shares of the range, from its front or its back; none if it is empty, or of another turn.
static Taken take(uint64_t *range, uint32_t turn, int from_front) {
  uint64_t seen = LOAD(range);
  for (;;) {
    const uint32_t first = (uint32_t)seen >> 16, behind = (uint32_t)seen & 0xffff;
    if ((uint32_t)(seen >> 32) != turn || first == behind) return (Taken){0, 0};
    const uint32_t count = portion(behind - first);
    const Taken taken = {from_front ? first : behind - count, from_front ? first + count : behind};
    const uint64_t left = from_front ? range_of(turn, taken.behind, behind) : range_of(turn, first, taken.first);
    if (__atomic_compare_exchange_n(range, &seen, left, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return taken;
  }
}

// Shares of this turn for a thread: its own, else another one's.
static Taken take_any(ThreadPool *pool, uint32_t turn, uint32_t thread) {
  const uint32_t ranges = ranges_of(pool);
  Taken taken = take(&pool->ranges[thread % ranges], turn, 1);
  for (uint32_t i = 1; taken.first == taken.behind && i < ranges; i++) {
    taken = take(&pool->ranges[(thread + i) % ranges], turn, 0);
  }
  return taken;
}

static void begin_turn(ThreadPool *pool, uint32_t turn) {
  STORE(&pool->turn, turn);
  if (LOAD(&pool->napping) && __atomic_exchange_n(&pool->napping, 0, __ATOMIC_SEQ_CST)) {
    __builtin_wasm_memory_atomic_notify((int32_t *)&pool->turn, 0xffffffffu);
  }
}

// Does the records up to the next shared one and opens its turn, or ends the program. Only the thread that finished a
// turn, or starts a program, is here. The shares that it takes at once, of the turn that it opened.
static Taken open_turn(ThreadPool *pool, uint32_t turn, uint32_t thread) {
  const int32_t *p = pool->record;
  for (int32_t left_out = 0; pool->number < pool->last; pool->number++, p += p[1]) {
    if (left_out > 0) {
      left_out--;
    } else if (is_shared(p)) {
      break;
    } else if (!(left_out = skipped(p))) {
      step(p, 0, p[2]);
    }
  }
  pool->record = p;
  Taken own = {0, 0};
  if (pool->number == pool->last) {
    STORE(&pool->ended, turn);
  } else {
    const uint32_t threads = pool->threads, ranges = ranges_of(pool), units = (uint32_t)p[2];
    uint32_t shares = ((uint32_t)p[3] + threads - 1) / threads * threads;
    if (shares > MOST_SHARES) shares = MOST_SHARES;
    if (shares > units) shares = units;
    pool->shares = shares;
    pool->done = 0;
    for (uint32_t i = 0; i < ranges; i++) {
      uint32_t first = shares * i / ranges;
      const uint32_t behind = shares * (i + 1) / ranges;
      if (i == thread % ranges) {
        own = (Taken){first, first + portion(behind - first)};
        first = own.behind;
      }
      STORE(&pool->ranges[i], range_of(turn, first, behind));
    }
  }
  begin_turn(pool, turn);
  return own;
}

// Works at this turn, and at those that it opens, until there is nothing left to take. The last of these turns.
static uint32_t work(ThreadPool *pool, uint32_t turn, uint32_t thread, Taken taken) {
  for (uint32_t done = 0;;) {
    while (taken.first != taken.behind) {  // not after the turn is over: it lacks what this thread has taken
      const int32_t *p = pool->record, shares = (int32_t)pool->shares;
      step(p, begin_of(p[2], (int32_t)taken.first, shares), begin_of(p[2], (int32_t)taken.behind, shares));
      done += taken.behind - taken.first;
      taken = take_any(pool, turn, thread);
    }
    if (!done) return turn;
    // Read before its shares are counted: until then the turn is not over, afterwards this may be the next one's number.
    const uint32_t shares = LOAD(&pool->shares);
    if (shares != done && ADD(&pool->done, done) + done != shares) return turn;
    done = 0;
    pool->number++, pool->record += pool->record[1];
    taken = open_turn(pool, ++turn, thread);
  }
}

// 1 once there is another turn than this one, 0 if the pool is poisoned. `hurry`: the thread's own counts, between programs
// and within one, of waits that were longer than it span, less those that were not: where others need the cores, it soon
// leaves them its own.
static int await_turn(ThreadPool *pool, uint32_t turn, uint32_t *hurry) {
  const uint32_t at_work = LOAD(&pool->ended) != turn;
  uint32_t *own = hurry + at_work;
  for (int32_t i = (at_work ? SPINS : JOB_SPINS) >> *own; i > 0; i--) {
    if (LOAD(&pool->turn) != turn) {
      if (*own) --*own;
      return 1;
    }
  }
  if (*own < MOST_HURRY) ++*own;
  for (uint32_t naps = 0;; naps += at_work) {
    STORE(&pool->napping, 1);
    if (LOAD(&pool->turn) != turn) return 1;
    if (naps > pool->max_naps) STORE(&pool->poisoned, 1);
    if (LOAD(&pool->poisoned)) return 0;
    __builtin_wasm_memory_atomic_wait32((int32_t *)&pool->turn, (int32_t)turn, at_work ? NAP_NS : -1);
  }
}

// Whether the threads have anything to share in these records.
static int any_shared(const int32_t *p, int32_t first, int32_t last) {
  for (int32_t i = first; i < last; i++, p += p[1]) {
    if (is_shared(p)) return 1;
  }
  return 0;
}

// Thread 0: starts the others on the records and works with them, or does all where nothing is shared. 0 if done, 1 if
// a thread did not answer in time.
int32_t thread_pool_run(ThreadPool *pool, const int32_t *program, int32_t first, int32_t count, int32_t threads) {
  if (LOAD(&pool->poisoned)) return 1;
  check(program);
  const int32_t *record = find(program, first);
  const int32_t last = behind(program, first, count);
  if (!any_shared(record, first, last)) {
    run(program, first, count, 0, 1);
    return 0;
  }
  pool->record = record, pool->number = first, pool->last = last, pool->threads = (uint32_t)threads;
  uint32_t turn = LOAD(&pool->turn) + 1;
  pool->hurry[1] /= 2;  // what disturbed the last run may be over
  begin_turn(pool, turn);  // an empty one, for which they wake up
  Taken taken = open_turn(pool, ++turn, 0);
  for (;;) {
    turn = work(pool, turn, 0, taken);
    if (LOAD(&pool->ended) == turn) return 0;
    if (!await_turn(pool, turn, pool->hurry)) return 1;
    turn = LOAD(&pool->turn);
    taken = take_any(pool, turn, 0);
  }
}

// A worker: works at every turn, until the pool is poisoned or dismissed.
void thread_pool_work(ThreadPool *pool, int32_t thread, int32_t turns_seen) {
  uint32_t turn = (uint32_t)turns_seen, hurry[2] = {0, 0};
  while (await_turn(pool, turn, hurry) && !LOAD(&pool->poisoned) && !LOAD(&pool->dismissed)) {
    if (LOAD(&pool->ended) == turn) hurry[1] /= 2;
    turn = LOAD(&pool->turn);
    turn = work(pool, turn, (uint32_t)thread, take_any(pool, turn, (uint32_t)thread));
  }
}

// Sends every worker home; they must not be in a program.
void thread_pool_dismiss(ThreadPool *pool) {
  STORE(&pool->dismissed, 1);
  begin_turn(pool, LOAD(&pool->turn) + 1);
}

#endif
