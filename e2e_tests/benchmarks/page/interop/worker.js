// One system of the interop tests in a worker of its own: {id, method, options} -> {id, value} or {id, error}.

const system = new URL(self.location.href).searchParams.get("system");
let running = null;

const METHODS = {
  async start({ config, data }) {
    const { start } = await import(`./${system}.js`);
    running = await start(config, data);
    return running.version;
  },
  open: ({ test }) => running.open(test),
  result: ({ test }) => running.result(test),
  times: ({ test, runs }) => running.times(test, runs),
};

self.onmessage = async ({ data: { id, method, options } }) => {
  try {
    self.postMessage({ id, value: await METHODS[method](options) });
  } catch (error) {
    self.postMessage({ id, error: String(error.message ?? error).trim().split("\n").slice(-8).join("\n") });
  }
};
