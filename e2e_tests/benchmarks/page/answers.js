// A worker's end of remote.js: {id, method, options} -> {id, value} or {id, error}.

/** Answers calls of these methods from now on, and says so. */
export function answerCalls(methods) {
  self.onmessage = async ({ data: { id, method, options } }) => {
    try {
      const value = await methods[method](options);
      self.postMessage({ id, value }, value?.bitmap ? [value.bitmap] : []);
    } catch (error) {
      self.postMessage({ id, error: String(error.message ?? error).trim().split("\n").slice(-8).join("\n") });
    }
  };
  self.postMessage({ id: 0, value: "ready" });
}
