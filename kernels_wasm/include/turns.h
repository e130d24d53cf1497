// A loop's turns: one program over and over, without the host in between. Included by the generated dispatch.c.
#pragma once

#include <stdint.h>

#include "bytes.h"
#include "program.h"
#include "thread_pool.h"

// Written by the host.
typedef struct {
  const int32_t *program;
  int32_t steps;
  int64_t *number;       // the program reads the turn's number there
  const uint8_t *shown;  // what it leaves that is kept of each turn; the first byte is 0 where the loop ends
  int32_t nbytes;        // of that
  uint8_t *kept;         // of the turns of a call, one behind the other
  int64_t turn;          // the number of the next one
} LoopTurns;

// Runs the next turns, at most so many, until one ends the loop; how many ran, -1 if a thread did not answer in time.
int32_t run_turns(void *pool, LoopTurns *turns, int32_t count, int32_t threads) {
  uint8_t *kept = turns->kept;
  for (int32_t done = 0; done < count; kept += turns->nbytes) {
    *turns->number = turns->turn++;
#if defined(__wasm_atomics__)
    if (pool && thread_pool_run(pool, turns->program, 0, turns->steps, threads)) return -1;
#else
    (void)threads;
#endif
    if (!pool) run(turns->program, 0, turns->steps, 0, 1);
    copy_bytes(kept, turns->shown, turns->nbytes);
    done++;
    if (!*turns->shown) return done;
  }
  return count;
}
