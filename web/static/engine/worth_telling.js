// What the page hears of progress.

const PAUSE_MS = 50; // between what it hears of one stage

const toldAt = new Map(); // stage -> when the page last heard of it

/** Whether the page is to hear of this: of each stage the first, the last, and some in between. */
export function worthTelling({ stage, done, total }) {
  const now = performance.now();
  if (done < total && now < (toldAt.get(stage) ?? 0) + PAUSE_MS) return false;
  toldAt.set(stage, done < total ? now : -Infinity); // what begins again begins at once
  return true;
}
