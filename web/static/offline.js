// Keeps what the page needs to start without a network, for service_worker.js. All of it belongs to one version of the site.

import { browsersOwnCheck, sha256Of } from "./integrity.js";

const PREFIX = "webinfer site ";
const NEEDED = /^(static\/|pyodide\/pyodide\.|snapshot\/|images\/astronaut)/;

/** A name for these files in these versions. */
async function nameOf(manifest) {
  const text = Object.keys(manifest).sort().map((name) => `${name} ${manifest[name].sha256}`).join("\n");
  return PREFIX + (await sha256Of(new TextEncoder().encode(text))).slice(0, 16);
}

/**
 * Keeps the page and the files that it needed in this worker, and forgets other versions. The page goes in last: a
 * version without one is not complete. What is kept already is not asked for again. Nothing is kept if the server has
 * another version by now, or is not asked well, and no file that is not the published one.
 */
export async function keepSite(manifest) {
  if (!self.caches || !navigator.locks) return;
  await navigator.locks.request("webinfer site", { ifAvailable: true }, async (lock) => lock && (await keep(manifest)));
}

async function keep(manifest) {
  const name = await nameOf(manifest);
  const cache = await caches.open(name);
  const present = new Set((await cache.keys()).map(({ url }) => new URL(url).pathname));
  const used = new Set(performance.getEntriesByType("resource").map(({ name: url }) => new URL(url).pathname));
  const files = Object.entries(manifest).map(([file, row]) => ({ file, row, path: new URL(row.url).pathname }));
  const missing = files.filter(({ file, path }) => (NEEDED.test(file) || used.has(path)) && !present.has(path));
  if (!missing.length && present.has("/")) return;
  const page = await fetch("/", { cache: "no-cache" });
  const text = await page.clone().text();
  if (!page.ok || !files.every(({ path }) => text.includes(path))) return;
  for (const { row, path } of missing) await cache.put(path, await whole(row));
  await cache.put("/", page);
  for (const other of await caches.keys()) if (other.startsWith(PREFIX) && other !== name) await caches.delete(other);
}

/** The answer with a file, checked by the browser; one that is damaged in its cache is asked for again. */
async function whole(row) {
  const check = browsersOwnCheck(row);
  const answer = await fetch(row.url, check).catch(() => fetch(row.url, { ...check, cache: "reload" }));
  if (!answer.ok) throw new Error(`the server answered ${answer.status} for ${row.url}`);
  return answer;
}
