// Opens pages without a network, from the files that offline.js kept. With a network it only sees that the page
// comes: files have hashes in their names, and the browser's own cache keeps them with the machine code that it made of them.

const PREFIX = "webinfer site "; // of the caches of offline.js
const HOME = "/";
const DEADLINE_MS = 3_000; // for the page's first byte, if there is one that was kept

const MARK = "webinfer offline"; // name of a cache that is there as long as `offline` is true
let offline = null; // whether the last page was one that was kept: then its files come from beside it; null: see MARK

/** What was kept under this address; of a site that is complete, which it is once its home page is there. */
async function kept(address) {
  for (const name of await caches.keys()) {
    if (!name.startsWith(PREFIX)) continue;
    const cache = await caches.open(name);
    const found = (await cache.match(HOME)) && (await cache.match(address, { ignoreSearch: true, ignoreVary: true }));
    if (found) return found;
  }
  return null;
}

async function openPage(event) {
  const { request, preloadResponse } = event;
  const network = preloadResponse.then((answer) => answer ?? fetch(request));
  const late = new Promise((resolve) => setTimeout(resolve, DEADLINE_MS));
  const answer = await Promise.race([network, late]).catch(() => null);
  const own = answer?.status < 500 ? null : await kept(new URL(request.url).pathname);
  offline = own !== null;
  event.waitUntil(offline ? caches.open(MARK) : caches.delete(MARK));
  return own ?? network;
}

/** A file of the page. The browser ends this script whenever it is idle: then only the mark knows where the page is from. */
async function openFile(request) {
  offline ??= await caches.has(MARK);
  return (offline && (await kept(request))) || fetch(request);
}

self.addEventListener("install", (event) => {
  self.skipWaiting(); // no version of this script knows any file
  // Where it can be said, files pass by this script: the browser's own cache has them without a network, too.
  event.addRoutes?.({ condition: { urlPattern: new URLPattern({ pathname: "/assets/*" }) }, source: "network" });
});
self.addEventListener("activate", (event) => event.waitUntil(self.registration.navigationPreload?.enable()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin !== self.location.origin || request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(openPage(event));
  else if (offline !== false && pathname.startsWith("/assets/")) event.respondWith(openFile(request));
});
