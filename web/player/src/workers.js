// Workers of the player. Bundlers recognise the way that player.js names the worker's script; where one does not, or
// the script was not copied beside the bundle, the next way is tried.

import { PlayerError } from "./errors.js";

const START_MS = 20_000; // the script may come over a slow network
export const HELLO = "webinfer-player"; // the first message of a worker of the player

/** A worker that runs, by the first of the `starters` that starts one. */
export async function startWorker(starters) {
  const problems = [];
  for (const start of starters) {
    let worker;
    try {
      worker = await start();
      await greeted(worker);
      return worker;
    } catch (error) {
      worker?.terminate();
      problems.push(error.message);
    }
  }
  const found = globalThis.Worker ? problems.join("; ") : "there is no Worker here";
  throw new PlayerError("unavailable", `no worker of the player starts: ${found}. Put player_worker.js beside the page's scripts and give its address as workerUrl`);
}

function greeted(worker) {
  let timer;
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data === HELLO ? resolve() : reject(new Error("its script is not the player's")));
    worker.onerror = (event) => {
      event.preventDefault?.();
      reject(new Error(event.message || "its script cannot be loaded"));
    };
    timer = setTimeout(() => reject(new Error(`no answer for ${START_MS / 1000} s`)), START_MS);
  }).finally(() => {
    clearTimeout(timer);
    worker.onmessage = worker.onerror = null;
  });
}
