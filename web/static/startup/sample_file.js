// Files of the site, or of a package that the server fetches: samples of pages that show no picture, vocabularies.

import { lateFile } from "./late_models.js";

/** The page's sample as a File. */
export const sampleFile = (settings, report) => fetchedFile(document.documentElement.dataset.sample, settings, report);

/** A file by its name in the manifest; `report` hears how far a package is. Throws what lateFile throws, or why it did not come. */
export async function fetchedFile(name, { manifest, facts, home }, report) {
  const { url } = await lateFile(name, manifest, { ...facts, home }, report);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} returned ${answer.status}.`);
  return new File([await answer.blob()], name.split("/").at(-1));
}
