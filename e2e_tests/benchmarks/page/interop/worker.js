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

import("../answers.js").then(({ answerCalls }) => answerCalls(METHODS)); // a classic worker has no other import
