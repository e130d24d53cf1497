// The player: the model as a package, without Python.

const HOME = new URL("../rivals/player/", import.meta.url).href;

export async function start({ threads, backend }) {
  const { load } = await import(`${HOME}player.js`);
  return {
    version: "webinfer-player",
    files(model) {
      if (!model.package) throw new Error(model.package_why);
      return { package: model.package };
    },
    load: (model, files) => open(load, model, files, threads, backend),
  };
}

async function open(load, { inputs: wanted }, files, threads, backend) {
  const model = await load(files.package, { backend, threads: Math.max(1, threads) });
  if (model.backend !== backend || model.threads !== Math.max(1, threads)) throw new Error(model.choice);
  let into; // as pages do that run a model again and again
  return {
    async run(inputs) {
      const outputs = await model.run(Object.fromEntries(wanted.map(({ name }, i) => [name, inputs[i]])), { into });
      into = outputs;
      return Object.entries(outputs).map(([name, { data }]) => ({ name, data }));
    },
    close: () => model.close(),
  };
}
