// The page "This browser": every ability that the site can use, present, or why not and what helps.

import { byId } from "../../ui/dom.js";
import { startEngine } from "../../engine/engine_page.js";
import { showCapabilities } from "../../ui/panels.js";

const PREFIX = "webinfer site "; // of the caches of offline.js

/** What can be asked without the engine: {name, present, value, reason, fix}. */
async function abilities() {
  const { quota, usage } = (await navigator.storage?.estimate?.().catch(() => null)) ?? {};
  const devices = (await navigator.mediaDevices?.enumerateDevices?.().catch(() => [])) ?? [];
  const camera = devices.some(({ kind }) => kind === "videoinput");
  const secure = self.isSecureContext;
  return [
    {
      name: "Camera", present: camera,
      reason: camera ? "" : secure ? "No camera is connected, or this browser hides it." : "The page was not loaded over https.",
      fix: camera ? "" : secure ? "Connect one, or use pictures and videos." : "Open it over https or on localhost.",
    },
    {
      name: "Video frames without copies", present: "VideoFrame" in self,
      reason: "VideoFrame" in self ? "" : "This browser has no WebCodecs.", fix: "VideoFrame" in self ? "" : "The camera is read picture by picture, a little slower.",
    },
    {
      name: "Video frames as they arrive", present: "requestVideoFrameCallback" in HTMLVideoElement.prototype,
      reason: "requestVideoFrameCallback" in HTMLVideoElement.prototype ? "" : "This browser only reports when it paints.", fix: "",
    },
    {
      name: "Storage", present: Boolean(quota), value: quota ? `${(usage / 1e6).toFixed(1)} MB used of ${(quota / 1e9).toFixed(1)} GB` : "",
      reason: quota ? "" : "This browser does not report its storage limit.", fix: quota ? "" : "This may be a private window: later visits start as slowly as the first.",
    },
    {
      name: "Service worker", present: Boolean(navigator.serviceWorker),
      reason: navigator.serviceWorker ? "" : "This browser or window has none.", fix: navigator.serviceWorker ? "" : "Open the site in a normal window over https or on localhost.",
    },
  ];
}

/** Says which pages open without a network. */
async function sayKept({ home }) {
  const addresses = new Set();
  for (const name of (await self.caches?.keys?.().catch(() => [])) ?? []) {
    if (!name.startsWith(PREFIX)) continue;
    const cache = await caches.open(name);
    for (const { url } of await cache.keys()) {
      const { pathname } = new URL(url);
      if (pathname.startsWith(home) && !pathname.startsWith(`${home}assets/`)) addresses.add(pathname.slice(home.length));
    }
  }
  const list = [...addresses].sort().map((address) => (address === "" ? "the home page" : address.replace(/\/$/, "")));
  byId("kept").textContent = list.length
    ? `These pages open here without a network: ${list.join(", ")}. Others are added once they have been visited.`
    : "No page has been saved yet. A page is saved a few seconds after its first result; then it opens without a network.";
}

addEventListener("beforeinstallprompt", (event) => {
  event.preventDefault();
  byId("install").hidden = false;
  byId("install").onclick = () => event.prompt();
});

function started(capabilities) {
  showCapabilities(capabilities);
  document.documentElement.dataset.webinferResult = JSON.stringify({ capabilities });
}

const { begin, settings } = await startEngine({ started, lost: () => {} }); // what was found holds without the engine
begin();
showCapabilities(await abilities(), byId("abilities"));
await sayKept(settings);
