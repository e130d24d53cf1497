// The sample of a page that shows no picture: a file of the site, or of a package that the server fetches.

import { lateFile } from "./late_models.js";

/** The sample as a File; `report` hears how far a package is. Throws what lateFile throws, or why the file did not come. */
export async function sampleFile({ manifest, facts, home }, report) {
  const { sample } = document.documentElement.dataset;
  const { url } = await lateFile(sample, manifest, { ...facts, home }, report);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} was answered with ${answer.status}.`);
  return new File([await answer.blob()], sample.split("/").at(-1));
}
