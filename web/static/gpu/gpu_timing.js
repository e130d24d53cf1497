// How long the GPU takes for a range of dispatches: by its own timestamps where it has them, else by the clock
// around the submit. Chrome rounds timestamps to 0.1 ms, so what is timed is repeated until it lasts for longer.

import { settled } from "./gpu_wait.js";

const STAMPS = 16; // bytes of two timestamps
const timers = new WeakMap(); // GPUDevice -> {set, resolved, staging}, or null where there are no timestamps

function timerOf(gpu) {
  if (!timers.has(gpu)) {
    const usage = GPUBufferUsage;
    timers.set(gpu, gpu.features.has("timestamp-query") ? {
      set: gpu.createQuerySet({ type: "timestamp", count: 2 }),
      resolved: gpu.createBuffer({ size: STAMPS, usage: usage.QUERY_RESOLVE | usage.COPY_SRC }),
      staging: gpu.createBuffer({ size: STAMPS, usage: usage.MAP_READ | usage.COPY_DST }),
    } : null);
  }
  return timers.get(gpu);
}

const last = new WeakMap(); // GPUDevice -> promise of the timing before: they share timestamps

/**
 * Milliseconds of one pass over `count` dispatches from `first`, averaged over `repeats` passes of one submit.
 * Each dispatch waits for the one before: they write the same buffers.
 */
export function timed(program, first, count, repeats) {
  const { gpu } = program.device;
  const run = (last.get(gpu) ?? Promise.resolve()).then(() => measured(program, first, count, repeats));
  last.set(gpu, run.catch(() => {}));
  return run;
}

async function measured(program, first, count, repeats) {
  const { device } = program;
  device.check();
  const { queue } = device.gpu;
  const timer = timerOf(device.gpu);
  const encoder = device.gpu.createCommandEncoder();
  program.encode(encoder, first, count, repeats, timer && {
    timestampWrites: { querySet: timer.set, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 },
  });
  if (timer) {
    encoder.resolveQuerySet(timer.set, 0, 2, timer.resolved, 0);
    encoder.copyBufferToBuffer(timer.resolved, 0, timer.staging, 0, STAMPS);
  }
  const begin = performance.now();
  queue.submit([encoder.finish()]);
  const ended = timer ? timer.staging.mapAsync(GPUMapMode.READ) : queue.onSubmittedWorkDone();
  await Promise.race([device.software ? ended : settled(queue, ended), device.whenLost]);
  device.check();
  const waited = performance.now() - begin;
  if (!timer) return waited / repeats;
  const [start, end] = new BigUint64Array(timer.staging.getMappedRange());
  timer.staging.unmap();
  const written = end > 0n && end >= start; // counters may jump backwards
  return (written ? Number(end - start) / 1e6 : waited) / repeats;
}
