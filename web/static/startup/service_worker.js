// Opens pages without a network, from the files that offline.js kept. With a network it only sees that the page
// comes: files have hashes in their names, and the browser's own cache keeps them with the machine code that it made of them.
// Asked for with ?isolate it also adds the headers that isolate pages, where a static host cannot.

const PREFIX = "webinfer site "; // of the caches of offline.js
const HOME = new URL("./", self.location.href).pathname;
const ASSETS = `${HOME}assets/`;
const ISOLATE = new URL(self.location.href).searchParams.has("isolate");
const HASH = "X-Webinfer-SHA256"; // header of a kept page, by offline.js
const DEADLINE_MS = 3_000; // for the page's first byte, if there is one that was kept

const MARK = "webinfer offline"; // name of a cache that is there as long as `offline` is true
let offline = null; // whether the last page was one that was kept: then its files come from beside it; null: see MARK

/** The caches of this site's versions that are complete, which they are once their home page is there. */
async function versions() {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX));
  const opened = await Promise.all(names.map((name) => caches.open(name)));
  const complete = await Promise.all(opened.map((cache) => cache.match(HOME)));
  return opened.filter((_, i) => complete[i]);
}

/** What was kept under this address. */
async function kept(address) {
  for (const cache of await versions()) {
    const found = await cache.match(address, { ignoreSearch: true, ignoreVary: true });
    if (found) return found;
  }
  return null;
}

/** The page that was kept under this address, if it is whole. */
async function keptPage(address) {
  const found = await kept(address);
  const wanted = found?.headers?.get(HASH);
  if (!wanted) return found;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await found.clone().arrayBuffer()));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") === wanted ? found : null;
}

const OFFLINE_STYLE = "body{font:1rem/1.6 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}a{display:inline-block;min-height:1.75rem}";
// The language that chosen_language.js would choose.
const OFFLINE_SCRIPT = `let wanted = navigator.language;
try { wanted = localStorage.getItem("webinfer language") ?? wanted; } catch {}
if (wanted.startsWith("de")) {
  document.documentElement.lang = "de";
  document.title = "Kein Netz";
  for (const part of document.querySelectorAll("main")) part.hidden = !part.hidden;
}`;

/** The address of a page as its title: /background-removal is "Background removal". */
function titled(path) {
  const words = encodeURI(path.slice(HOME.length)).replace(/\/$/, "").replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A page that says in both languages that there is no network, with links to those that were kept, and shows one of them. */
async function withoutNetwork() {
  const paths = (await Promise.all((await versions()).map((cache) => cache.keys()))).flat().map(({ url }) => new URL(url).pathname);
  const pages = [...new Set(paths)].filter((path) => !path.startsWith(ASSETS));
  const links = (home) => pages.map((path) => `<li><a href="${encodeURI(path)}">${path === HOME ? home : titled(path)}</a>`).join("");
  const text = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>No network</title><style>${OFFLINE_STYLE}</style>
<main><h1>No network</h1><p>This page cannot be loaded now, and it was not saved, because it has not been visited here.
Check the connection and <a href="">try again</a>, or open a saved page:</p><ul>${links("the home page")}</ul></main>
<main hidden><h1>Kein Netz</h1><p>Diese Seite lässt sich gerade nicht laden. Sie ist hier nicht gespeichert, weil sie hier noch nie offen war.
Prüfen Sie die Verbindung und <a href="">versuchen Sie es noch einmal</a>, oder öffnen Sie eine gespeicherte Seite:</p><ul>${links("die Startseite")}</ul></main>
<script>${OFFLINE_SCRIPT}</script></html>`;
  return new Response(text, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" } });
}

async function openPage(event) {
  const { request, preloadResponse } = event;
  const network = Promise.resolve(preloadResponse).then((answer) => answer ?? fetch(request));
  const late = new Promise((resolve) => setTimeout(resolve, DEADLINE_MS));
  const answer = await Promise.race([network, late]).catch(() => null);
  const own = answer?.status < 500 ? null : await keptPage(new URL(request.url).pathname);
  offline = own !== null;
  event.waitUntil(offline ? caches.open(MARK) : caches.delete(MARK));
  return own ?? network.catch(withoutNetwork);
}

/** A file of the page. The browser ends this script whenever it is idle: then only the mark knows where the page is from. */
async function openFile(request) {
  offline ??= await caches.has(MARK);
  return (offline && (await kept(request))) || fetch(request);
}

/** The same answer for a page that is to be isolated. One that redirects, or that may not be read, stays as it is. */
function isolated(answer) {
  if (answer.type === "opaqueredirect" || answer.status === 0 || answer.redirected) return answer;
  const headers = new Headers(answer.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  const { status, statusText } = answer;
  return new Response([204, 304].includes(status) ? null : answer.body, { status, statusText, headers });
}

self.addEventListener("install", (event) => {
  self.skipWaiting(); // no version of this script knows any file
  // Where it can be said, files pass by this script: the browser's own cache has them without a network, too.
  if (!ISOLATE) event.addRoutes?.({ condition: { urlPattern: new URLPattern({ pathname: `${ASSETS}*` }) }, source: "network" });
});
// Firefox fails a page whose preload fails, whatever this script answers: only Chromium, which has these data, is asked to.
const preloads = Boolean(self.navigator?.userAgentData);
self.addEventListener("activate", (event) => event.waitUntil(self.registration.navigationPreload?.[preloads ? "enable" : "disable"]()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin !== self.location.origin || request.method !== "GET") return;
  const page = request.mode === "navigate";
  const worker = ISOLATE && request.destination === "worker"; // its script has to say what its page says
  if (!page && !worker && (offline === false || !pathname.startsWith(ASSETS))) return;
  const answer = page ? openPage(event) : openFile(request);
  event.respondWith(ISOLATE && (page || worker) ? answer.then(isolated) : answer);
});
