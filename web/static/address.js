// What is chosen on the page stands in its address, so that a link carries it.

/** The value of a name in the address, or null. */
export const get = (name) => new URLSearchParams(location.search).get(name);

/** Writes a value into the address, or takes the name out for null; the page stays. */
export function set(name, value) {
  const parameters = new URLSearchParams(location.search);
  if (value === null) parameters.delete(name);
  else parameters.set(name, value);
  const text = `${location.pathname}${parameters.size ? "?" : ""}${parameters}${location.hash}`;
  if (text !== `${location.pathname}${location.search}${location.hash}`) history.replaceState(null, "", text);
}
