// Code in the address of a page: compressed, behind "#code=". A server never sees it.

import { packed, unpacked } from "./link_text.js";

const MARK = "#code=";
const MOST_LINK = 8_000; // characters of the address that hold code
const MOST_CODE = 50_000; // bytes of code, whatever a link unpacks to

/** Whether this fragment of an address holds code. */
export const holdsCode = (hash) => hash.startsWith(MARK);

/** The fragment that carries this code. Throws an error that says what is wrong. */
export async function linked(code) {
  const hash = MARK + (await packed(code));
  if (hash.length > MOST_LINK) throw new Error(`This code is too long for a link: it would take ${hash.length} characters; at most ${MOST_LINK} fit.`);
  return hash;
}

/** The code that this fragment carries. Throws an error that says what is wrong. */
export async function unlinked(hash) {
  if (hash.length > MOST_LINK) throw new Error(`The link is too long: it has ${hash.length} characters; at most ${MOST_LINK} are allowed.`);
  try {
    return await unpacked(hash.slice(MARK.length), MOST_CODE);
  } catch (error) {
    if (error instanceof RangeError) throw new Error(`The link contains more than ${MOST_CODE} bytes of code.`);
    throw new Error("The link contains no readable code; part of it may be missing.");
  }
}
