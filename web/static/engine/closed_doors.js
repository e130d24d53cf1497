// Code that came with a link runs in the engine's worker. Before it does, the worker loses all ways to what the site keeps
// in this browser: stored plans, tunings and weights, which later visits run. They cannot be brought back: what is deleted
// are the browser's own properties, and a worker, which would have them anew, cannot be started from here any more. The
// page starts the engine's threads alone (engine_threads.js).
//
// Why not a worker of an opaque origin, measured in Chromium 156: one from a data: address is never isolated, so that it
// has no shared memory. A frame with sandbox="allow-scripts" and allow="cross-origin-isolated" keeps isolation, and so does
// a classic worker that it starts from a blob: address (a module worker does not start there); storage is closed to both.
// But that worker shares no memory with the page's threads, and every file of the engine must come with CORS headers, which
// many static hosts do not send: there, code from links would not run at all. What these lines leave of the worker's names
// was read one by one there: nothing that stores, and no other realm.

const GLOBALS = [
  "caches", "CacheStorage", "Cache", "indexedDB", "IDBFactory", "Worker", "SharedWorker", "BroadcastChannel", "WebSocketStream",
  "StorageManager", "FileSystemHandle", "FileSystemFileHandle", "FileSystemDirectoryHandle", "cookieStore", "CookieStore",
  "webkitRequestFileSystem", "webkitRequestFileSystemSync", "webkitResolveLocalFileSystemURL", "webkitResolveLocalFileSystemSyncURL",
];
const OF_NAVIGATOR = ["storage", "serviceWorker", "locks", "storageBuckets", "webkitTemporaryStorage", "webkitPersistentStorage"];

/** Closes them; what stays open is named in an error, and nothing may run then. */
export function closeDoors() {
  const open = [...GLOBALS.filter((name) => !gone(self, name)), ...OF_NAVIGATOR.filter((name) => !gone(self.navigator, name))];
  if (open.length) throw new Error(`this browser would leave ${open.join(", ")} open to code from a link, so the code is not run`);
}

/** Whether the object has the property no more, on itself or on what it inherits from. */
function gone(object, name) {
  for (let holder = object; holder; holder = Object.getPrototypeOf(holder)) {
    if (Object.hasOwn(holder, name)) Reflect.deleteProperty(holder, name);
  }
  return !(name in object);
}
