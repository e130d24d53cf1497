// webinfer in the benchmark of frames: {id, method, options} -> {id, value} or {id, error}. See webinfer_frames.py.

import { answerCalls } from "../answers.js";
import { startPython } from "../systems/webinfer.js";

let frames = null;

const bytesOf = async (url) => new Uint8Array(await (await fetch(new URL(`../${url}`, import.meta.url))).arrayBuffer());

const METHODS = {
  async open({ task: { task, options, models }, backend, threads }) {
    if (threads) Object.defineProperty(navigator, "hardwareConcurrency", { value: threads }); // tasks take what a machine has
    const { pyodide, python } = await startPython(new URL("webinfer_frames.py", import.meta.url), backend);
    const bytes = await Promise.all(Object.entries(models).map(async ([name, url]) => [name, await bytesOf(url)]));
    frames = await python.get("open_frames")(task, bytes, JSON.stringify(options), backend);
    return { version: `webinfer on Pyodide ${pyodide.version}` };
  },
  async look({ frame }) {
    try {
      return await frames.look(frame);
    } finally {
      frame.close();
    }
  },
};

answerCalls(METHODS);
