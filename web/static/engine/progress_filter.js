// Limits how often progress is reported to the page.

const PAUSE_MS = 50; // between two reports of one stage

const toldAt = new Map(); // stage -> time of its last report

/** Whether to report this progress event: the first and last of a stage always, others every PAUSE_MS. */
export function isDue({ stage, done, total }) {
  const now = performance.now();
  if (done < total && now < (toldAt.get(stage) ?? 0) + PAUSE_MS) return false;
  toldAt.set(stage, done < total ? now : -Infinity); // a stage that restarts reports at once
  return true;
}
