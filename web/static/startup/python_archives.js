// Python's files that are fetched at their first use, synchronously.

/** The files that the restored modules came from: fetched if Python ever reads one, for sources or further modules. */
export function fetchArchivesWhenRead({ FS }, archives, files) {
  for (const [path, name] of Object.entries(archives)) {
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    if (FS.analyzePath(path).exists) FS.unlink(path);
    lateFile(FS, path, files.url(name), files.manifest[name].bytes);
  }
}

/** A file that is fetched as a whole at its first use: what is kept for visits without a network are whole files. */
function lateFile(FS, path, url, bytes) {
  FS.writeFile(path, "");
  let contents = null;
  Object.defineProperties(FS.lookupPath(path).node, {
    contents: { get: () => (contents ??= fetchedNow(url)), set: (value) => (contents = value) },
    usedBytes: { get: () => bytes, set: () => {} },
  });
}

/**
 * The bytes of a file, while everything waits; `anew`: past what the browser has kept. In a page a synchronous request
 * gives text, where bytes from 0x80 on come as U+F780 and so on.
 */
export function fetchedNow(url, anew = false) {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  if (anew) request.setRequestHeader("Cache-Control", "no-cache");
  if (self.window) request.overrideMimeType("text/plain; charset=x-user-defined");
  else request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${url} cannot be fetched: the server answered ${request.status}`);
  return self.window ? Uint8Array.from(request.responseText, (letter) => letter.charCodeAt(0)) : new Uint8Array(request.response);
}
