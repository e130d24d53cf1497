// Values on their way into Python and out of it, in the engine worker.

/** What a page gives its task: pictures as they are, the fields of anything else as Python's own. */
export const forPython = (given) => (given?.close ? given : self.pyodide.toPy(given ?? undefined));

/** A copy of what Python shows as a buffer, of elements of this type or its own: Python's memory goes on changing. */
export function copied(proxy, type) {
  const view = proxy.getBuffer(type);
  try {
    return view.data.slice();
  } finally {
    view.release();
  }
}
