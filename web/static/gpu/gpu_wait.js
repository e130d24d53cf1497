// Waiting for the GPU without the browser's pauses.
//
// Chromium's GPU process looks for finished work when a command arrives, and else every 2 ms: a mapAsync whose
// work takes 0.2 ms comes back after 3. Asking onSubmittedWorkDone again and again sends such commands.
// Measured on an NVIDIA H200, 40 dispatches with readback, median: 3.3 ms waiting, 0.38 ms asking. Each question is work
// for the GPU process, too: asked every 0.05 to 0.15 ms, nine models' medians are 0.92 to 0.94 of those asked at each turn.

const ASKING_MS = 10; // longer work is worth a nap: asking costs a core
const BETWEEN_MS = 0.1;

let channel = null; // made when it is needed: an open port keeps Node alive
let wake = null;

function opened() {
  const made = new MessageChannel();
  made.port1.onmessage = () => {
    const resume = wake;
    wake = null;
    resume?.();
  };
  return made;
}

/** The next turn of the event loop, without the 4 ms that nested timers wait. One caller at a time matters: others join it. */
let turn = null;
function nextTurn() {
  turn ??= new Promise((resolve) => {
    wake = () => {
      turn = null;
      resolve();
    };
    channel ??= opened();
    channel.port2.postMessage(0);
  });
  return turn;
}

/** Settles as `promise` does, which ends when work on `queue` ends; sooner than by itself. */
export async function settled(queue, promise) {
  let pending = true;
  const end = () => { pending = false; };
  promise.then(end, end);
  const start = performance.now();
  for (let now = start, next = start; pending && now - start < ASKING_MS; now = performance.now()) {
    if (now >= next) {
      queue.onSubmittedWorkDone().catch(() => {}); // a lost device rejects it; `promise` tells
      next = now + BETWEEN_MS;
    }
    await nextTurn();
  }
  return promise;
}
