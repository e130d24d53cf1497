// Times of the demos that ran on this device, for the home page. They never leave the device.

const PREFIX = "webinfer ran ";
const EVERY_MS = 1000;
let noted = 0;

/** Notes how long a demo took here; `live`: on one of many pictures. */
export function remember({ backend, times }, live) {
  const now = performance.now();
  if (live && now - noted < EVERY_MS) return;
  noted = now;
  const ms = times.prepare_ms + times.infer_ms + times.decode_ms;
  try {
    localStorage.setItem(PREFIX + location.pathname, JSON.stringify({ backend, ms }));
  } catch {} // a browser that keeps nothing
}

/** What was noted of the demo with this address, {backend, ms}, or null. */
export function remembered(address) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + address));
  } catch {
    return null;
  }
}
