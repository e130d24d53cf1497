// What is chosen on the page stands in its address, so that a link carries it.

/** The value of a name in the address, or null. */
export const get = (name) => new URLSearchParams(location.search).get(name);

/** Writes values into the address by their names; null or "" takes a name out. The page stays. */
export function keepInAddress(values) {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === "") address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
  if (address.href !== location.href) history.replaceState(null, "", address);
}

/** The same for one value. */
export const set = (name, value) => keepInAddress({ [name]: value });
