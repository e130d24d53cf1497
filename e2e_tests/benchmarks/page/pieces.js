// A model's file, which lies in a site in pieces that can be carried one by one.

/** The model's file, put together of its pieces: one copy of the bytes, which all systems open. */
export async function modelOf({ pieces, bytes }) {
  const blobs = [];
  for (const piece of pieces) {
    const response = await fetch(new URL(`./${piece}`, import.meta.url));
    if (!response.ok) throw new Error(`${piece}: HTTP ${response.status}`);
    blobs.push(await response.blob());
  }
  const model = new Blob(blobs);
  if (model.size !== bytes) throw new Error(`the model's pieces have ${model.size} bytes, not ${bytes}`);
  return model;
}
