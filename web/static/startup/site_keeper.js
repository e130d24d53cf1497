// When the engine's worker keeps the site for visits without a network; offline.js does it.

import { browsersOwnCheck } from "./integrity.js";

/** How many files this worker has asked for. */
export const filesAsked = () => performance.getEntriesByType("resource").length;

/** Keeps the site of this manifest with the page at this address. A browser that keeps nothing is not a failure; nobody waits. */
export const keeperOf = (manifest, page, home) => async () => {
  try {
    const { url, ...row } = manifest["static/offline.js"];
    await fetch(url, browsersOwnCheck(row));
    await (await import(url)).keepSite(manifest, page, home);
  } catch (error) {
    console.info(`The page cannot be kept for visits without a network: ${error.message}`);
  }
};
