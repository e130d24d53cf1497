// Tunes the models of config.json one after the other: tuning.html?models=a,b:float32:32&budget=20000&runs=50
// A quantised model with :float32 is computed in float32, a number behind that is the batch.
// Posts ["about", …], for each model ["tuned", {model, text, gain, report, runs}] or ["refused", {model, message}],
// at the end ["done", true]. `report.lines`: the tuning log of this model. `runs`: milliseconds of runs with
// readback, default and tuned plan in turns.

const asked = new URL(location.href).searchParams;
const status = document.getElementById("status");
const lines = document.getElementById("lines");
const progress = document.getElementById("progress");

async function report(key, value) {
  await fetch("log", { method: "POST", body: JSON.stringify([key, value]) });
}

/** The worker with Python; `tell` hears its progress. */
function open(tell) {
  const worker = new Worker("tuning_worker.js", { type: "module" });
  let settle = null;
  worker.onmessage = ({ data }) => (data.progress ? tell(data.progress) : settle?.(data));
  worker.onerror = (event) => settle?.({ error: event.message || "the worker died" });
  const call = (method, options) => new Promise((resolve, reject) => {
    settle = (data) => ("error" in data ? reject(new Error(data.error)) : resolve(data.value));
    worker.postMessage({ method, options });
  });
  return { call, end: () => worker.terminate() };
}

async function run() {
  const config = await (await fetch("config.json")).json();
  const names = asked.get("models")?.split(",") ?? config.models;
  const budget = Number(asked.get("budget") ?? config.budget_ms), runs = Number(asked.get("runs") ?? config.runs);
  await report("about", { browser: navigator.userAgent, date: new Date().toISOString().slice(0, 19) });
  let worker = null;
  for (const [i, name] of names.entries()) {
    const tell = ({ done, total }) => {
      Object.assign(progress, { max: total || 1, value: done });
      status.textContent = `${name} (${i + 1} of ${names.length}): ${done} of ${total} shapes`;
    };
    status.textContent = `${name}: starting`;
    try {
      if (!worker) {
        worker = open((event) => tell(event));
        await worker.call("start");
      }
      const [file, dtype, batch] = name.split(":");
      const options = { dequantize: dtype === "float32", batch: Number(batch ?? 0), budget, runs };
      const value = await worker.call("tune", { file: `models/${file}.tflite`, ...options });
      lines.textContent += `${value.text}\n`;
      await report("tuned", { model: name, ...value });
    } catch (error) {
      lines.textContent += `${name}: ${error.message}\n`;
      await report("refused", { model: name, message: error.message });
      worker?.end(); // the next model gets a fresh one
      worker = null;
    }
  }
  status.textContent = "done";
}

run().then(() => report("done", true), (error) => report("failed", String(error.stack ?? error)).then(() => report("done", false)));
