// A model under an address of any site: its file and those beside it, with progress, and in plain words why not.

import { bytes } from "../../ui/dom.js";

const STALL_MS = 30_000; // without a byte
const MOST = 2 ** 31; // bytes: what one buffer holds in every browser
const HUB = "https://huggingface.co"; // as webinfer/host/hub.py

/** Why a model at an address is not available; `code` as the engine's errors have one. */
export class AddressError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const LOCAL = ["localhost", "127.0.0.1"];
const READABLE = "Download the file and drop it on this page instead.";

/** The URL that a text means: a web address, a page of the hub about a file, or hf:owner/name/file. */
export function addressOf(text) {
  const hub = /^hf:(?:\/\/)?([\w.-]+\/[\w.-]+?)(?:@([\w./-]+?))?\/(.+)$/.exec(text.trim());
  const written = hub ? `${HUB}/${hub[1]}/resolve/${encodeURIComponent(hub[2] ?? "main")}/${hub[3]}` : text.trim();
  if (!URL.canParse(written, location.href) || !/^(https?:|\/|\.)/.test(written)) throw new AddressError("address", `“${text}” is not a web address. An address starts with https://, or with hf: for a file on the Hugging Face Hub: hf:owner/name/file.`);
  const url = new URL(written, location.href);
  if (url.origin === HUB) url.pathname = url.pathname.replace("/blob/", "/resolve/");
  const secret = url.origin === location.origin || url.protocol === "https:" || LOCAL.includes(url.hostname);
  if (!secret) throw new AddressError("address", `${url.host} uses http, which this page is not allowed to load. Try the same address with https://. ${READABLE}`);
  return url;
}

/** The name of the file at an address. */
export function fileName(url) {
  const last = url.pathname.split("/").pop();
  try {
    return decodeURIComponent(last) || "model";
  } catch {
    return last; // a percent sign that begins no code
  }
}

/** How far a download is. */
export function arrived({ name, done, total }) {
  return `Downloading ${name}: ${bytes(done)}${total ? ` of ${bytes(total)}` : ""}`;
}

async function answerOf(url, signal) {
  const options = { mode: "cors", credentials: "omit", referrerPolicy: "no-referrer", signal };
  try {
    return await fetch(url, options);
  } catch (error) {
    if (signal.aborted) throw error;
    if (!navigator.onLine) throw new AddressError("model-missing", "This device is offline. Connect to a network and try again.");
    throw new AddressError("cross-origin", `The browser could not read ${url.href}. It does not say why. Either ${url.host} cannot be reached, or it does not allow other sites to read its files, `
      + `which needs the header Access-Control-Allow-Origin (CORS). ${READABLE}`);
  }
}

/** The bytes at an address as an ArrayBuffer; `step({name, done, total})` hears how far they are, `total` 0 where nobody knows. */
async function bytesAt(url, signal, step) {
  const name = fileName(url);
  step({ name, done: 0, total: 0 });
  const response = await answerOf(url, signal);
  if (!response.ok) throw new AddressError("model-missing", `${url.host} answered ${response.status}${response.statusText ? ` (${response.statusText})` : ""} for ${url.href}. Check the address.`);
  if (/^text\/html\b/.test(response.headers.get("Content-Type") ?? "")) throw new AddressError("model-missing", `${url.href} is a web page, not a model’s file. Copy the address of the download itself.`);
  const total = Number(response.headers.get("Content-Length") ?? 0);
  if (total > MOST) throw new AddressError("limit", `${name} has ${bytes(total)}; this page opens files of up to ${bytes(MOST)}.`);
  const parts = [];
  let done = 0;
  for (const reader = response.body.getReader(); ;) {
    const { value } = await reader.read();
    if (!value) break;
    parts.push(value);
    done += value.length;
    if (done > MOST) throw new AddressError("limit", `${name} is larger than ${bytes(MOST)}, the most that this page opens.`);
    step({ name, done, total: done > total ? 0 : total }); // of a compressed answer the total is another
  }
  return new Blob(parts).arrayBuffer();
}

/** The same, given up when nothing comes, or when `stop` is aborted. */
async function watchedBytes(url, stop, step) {
  const stalled = new AbortController();
  const late = () => stalled.abort();
  let timer = setTimeout(late, STALL_MS);
  const moved = (told) => {
    clearTimeout(timer);
    timer = setTimeout(late, STALL_MS);
    step(told);
  };
  try {
    return await bytesAt(url, AbortSignal.any([stop, stalled.signal]), moved);
  } catch (error) {
    if (stop.aborted) throw new AddressError("stopped", "The download was stopped.");
    if (stalled.signal.aborted) throw new AddressError("model-missing", `No data has arrived from ${url.host} for ${STALL_MS / 1000} seconds. Try again later.`);
    if (error instanceof AddressError) throw error;
    throw new AddressError("model-missing", `The download of ${fileName(url)} was interrupted: ${error.message}. Try again.`);
  } finally {
    clearTimeout(timer);
  }
}

/** {name: ArrayBuffer} of the file at a URL. */
export async function fetchFile(url, stop, step) {
  return { [fileName(url)]: await watchedBytes(url, stop, step) };
}

/** The same files with those that the model needs beside its own; `beside(files)` asks the engine for their names. */
export async function withFilesBeside(files, url, { beside, stop, step }) {
  const found = { ...files };
  for (const name of await beside(files)) found[name.split("?")[0]] = await watchedBytes(new URL(name, url), stop, step);
  return found;
}
