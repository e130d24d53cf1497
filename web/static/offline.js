// Keeps what the page needs to start without a network, for service_worker.js. All of it belongs to one version of the site.

const PREFIX = "webinfer site ";
const NEEDED = /^(static\/|pyodide\/pyodide\.|snapshot\/|images\/astronaut)/;

/** A name for these files in these versions. */
async function nameOf(manifest) {
  const text = Object.keys(manifest).sort().map((name) => `${name} ${manifest[name].sha256}`).join("\n");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return PREFIX + Array.from(digest.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Keeps the page and the files that it needed in this worker, and forgets other versions. The page goes in last: a
 * version without one is not complete. Nothing is kept if the server has another version by now, or is not asked well.
 */
export async function keepSite(manifest) {
  if (!self.caches || !navigator.locks) return;
  await navigator.locks.request("webinfer site", { ifAvailable: true }, async (lock) => lock && (await keep(manifest)));
}

async function keep(manifest) {
  const page = await fetch("/", { cache: "no-cache" });
  const text = await page.clone().text();
  const urls = Object.entries(manifest).map(([name, { url }]) => ({ name, path: new URL(url).pathname }));
  if (!page.ok || !urls.every(({ path }) => text.includes(path))) return;
  const name = await nameOf(manifest);
  const cache = await caches.open(name);
  const used = new Set(performance.getEntriesByType("resource").map(({ name: url }) => new URL(url).pathname));
  for (const { name: file, path } of urls) {
    if ((NEEDED.test(file) || used.has(path)) && !(await cache.match(path, { ignoreVary: true }))) await cache.add(path);
  }
  await cache.put("/", page);
  for (const other of await caches.keys()) if (other.startsWith(PREFIX) && other !== name) await caches.delete(other);
}
