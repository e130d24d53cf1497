// Files of a model: chosen, dropped (a folder too), or named in the address.

import { watchDrops } from "../../media/drops.js";

/** The files of a drop by their paths, those in folders included. */
async function droppedFiles(items) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.() ?? null);
  const files = [...items].map((item) => item.getAsFile());
  const found = new Map();
  const walk = async (entry, path) => {
    if (entry.isFile) return found.set(path + entry.name, await new Promise((resolve, reject) => entry.file(resolve, reject)));
    const reader = entry.createReader();
    for (;;) {
      const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!part.length) return null;
      for (const inner of part) await walk(inner, `${path}${entry.name}/`);
    }
  };
  for (const [at, entry] of entries.entries()) {
    if (entry) await walk(entry, "");
    else if (files[at]) found.set(files[at].name, files[at]);
  }
  return found;
}

/** {name: ArrayBuffer} of files by path. */
async function read(files) {
  const found = {};
  for (const [path, file] of files) found[path] = await file.arrayBuffer();
  return found;
}

/**
 * Calls `take(files)` with {path: ArrayBuffer} of what is dropped on the page or chosen; `zone` shows that it may be
 * dropped, without one nothing is; `busy` that files are being read; `refuse` hears why there are none.
 */
export function watchModelFiles({ zone, button, input, take, busy, refuse }) {
  const handle = async (collect) => {
    try {
      busy();
      const files = await collect();
      if (files.size) take(await read(files));
      else refuse({ code: "input", message: "What was dropped is not a file. Save the model first, then drop the file." });
    } catch (error) {
      refuse({ code: "input", message: `The file cannot be read: ${error.message}` });
    }
  };
  if (zone) {
    watchDrops(zone, ({ items }) => {
      const files = [...items].filter(({ kind }) => kind === "file");
      handle(() => droppedFiles(files));
    });
  }
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    const files = new Map([...input.files].map((file) => [file.webkitRelativePath || file.name, file]));
    input.value = ""; // so that the same file can be chosen again
    if (files.size) handle(async () => files);
  });
}
