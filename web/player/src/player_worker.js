// The script of the player's workers. The first message says what a worker is: the model (remote.js), or one thread of the
// kernels (thread_worker.js, which listens for itself).

import { loadWith } from "./load.js";
import { serve } from "./remote.js";
import { HELLO } from "./workers.js";
import "../../static/engine/thread_worker.js";

/** Kernel threads have this script, too, under the address and of the type that a bundler gave it. */
const another = () => new Worker(self.location.href, { type: isModule() ? "module" : "classic", name: self.name });

function isModule() {
  try {
    importScripts(); // modules must not
    return false;
  } catch {
    return true;
  }
}

serve((source, options) => loadWith(() => [another], source, options));
self.postMessage(HELLO);
