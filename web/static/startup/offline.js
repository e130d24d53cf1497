// Keeps what the page needs to start without a network, for service_worker.js. All of it belongs to one version of the site.

import { browsersOwnCheck, sha256Of } from "./integrity.js";

const PREFIX = "webinfer site ";
const HASH = "X-Webinfer-SHA256"; // of a page; files have theirs in the manifest
const WEIGHTS = /\.gguf$/; // the engine keeps these itself (webinfer/host/weights_browser.py)
const NEEDED = /^(static\/|pyodide\/pyodide\.|snapshot\/)/;
const [WHOLE, FIRST] = ["pyodide/pyodide.asm.wasm", "pyodide/pyodide.first.wasm"]; // Python's runtime; where it is in parts, the whole is for others
const ISLAND = /<script type="application\/json"[^]*?<\/script>/; // names every file of the site
const FILE = /"([./]*assets\/[^"]+[^"/])"/g; // in a page's attributes and in its list of files, which has folders, too

/** What the names of a site's versions begin with: there may be several sites below one origin. */
const prefixOf = (home) => (home === "/" ? PREFIX : `${PREFIX}${home} `);

/** A name for these files in these versions. */
async function nameOf(manifest, home) {
  const text = Object.keys(manifest).sort().map((name) => `${name} ${manifest[name].sha256}`).join("\n");
  return prefixOf(home) + (await sha256Of(new TextEncoder().encode(text))).slice(0, 16);
}

/**
 * Keeps the page with this address and the files that it needed in this worker, and the home page; forgets other
 * versions. A page goes in behind its files, the home page last: a version without one is not complete. What is kept
 * already, and whole, is not asked for again. Nothing is kept if the server has another version by now, or is not asked well, and
 * no file that is not the published one.
 */
export async function keepSite(manifest, page, home) {
  if (!self.caches || !navigator.locks) return;
  await navigator.locks.request("webinfer site", { ifAvailable: true }, async (lock) => lock && (await keep(manifest, page, home)));
}

async function keep(manifest, page, home) {
  const name = await nameOf(manifest, home);
  const cache = await caches.open(name);
  const present = new Set((await cache.keys()).map(({ url }) => new URL(url).pathname));
  const files = new Map(Object.entries(manifest).map(([file, row]) => [new URL(row.url).pathname, { file, row }]));
  const used = new Set(performance.getEntriesByType("resource").map(({ name: url }) => new URL(url).pathname));
  const needed = (file) => NEEDED.test(file) && !(file === WHOLE && manifest[FIRST]);
  const wanted = [...files].filter(([path, { file }]) => needed(file) || (used.has(path) && !WEIGHTS.test(file))).map(([path]) => path);
  const pages = [...new Set([page, home])];
  for (const path of await damaged(cache, files)) present.delete(path);
  if (pages.every((address) => present.has(address)) && wanted.every((path) => present.has(path))) return;
  const answers = new Map();
  for (const address of pages) {
    const answer = await fetch(address, { cache: "no-cache" });
    const text = await answer.clone().text();
    if (!answer.ok || !filesIn(text, address).every((path) => files.has(path))) return; // of another version
    wanted.push(...filesIn(text.replace(ISLAND, ""), address));
    answers.set(address, answer);
  }
  for (const path of new Set(wanted)) if (!present.has(path)) await cache.put(path, await whole(files.get(path).row));
  for (const [address, answer] of answers) await cache.put(address, await stamped(answer));
  const old = (other) => other.startsWith(prefixOf(home)) && !other.startsWith(`${prefixOf(home)}/`) && other !== name;
  for (const other of await caches.keys()) if (old(other)) await caches.delete(other);
}

/** The paths of what is kept and is not what was published: a disk, or a network that answers for others, has changed it. */
async function damaged(cache, files) {
  const found = [];
  for (const request of await cache.keys()) {
    const path = new URL(request.url).pathname;
    const answer = await cache.match(request);
    const bytes = await answer.arrayBuffer();
    if ((await sha256Of(bytes)) !== (files.get(path)?.row.sha256 ?? answer.headers.get(HASH))) found.push(path);
  }
  return found;
}

/** A page with the hash of its text, by which this script and the service worker know it again. */
async function stamped(answer) {
  const bytes = await answer.arrayBuffer();
  const headers = new Headers(answer.headers);
  headers.set(HASH, await sha256Of(bytes));
  return new Response(bytes, { headers });
}

const filesIn = (text, address) => [...text.matchAll(FILE)].map(([, path]) => new URL(path, new URL(address, self.location)).pathname);

/** The answer with a file, checked by the browser; one that is damaged in its cache is asked for again. */
async function whole(row) {
  const check = browsersOwnCheck(row);
  const answer = await fetch(row.url, check).catch(() => fetch(row.url, { ...check, cache: "reload" }));
  if (!answer.ok) throw new Error(`the server answered ${answer.status} for ${row.url}`);
  return answer;
}
