// webinfer in the benchmark of frames: {id, method, options} -> {id, value} or {id, error}. See webinfer_frames.py.

import { answerCalls } from "../answers.js";
import { startPython } from "../systems/webinfer.js";

const LOOK = JSON.stringify({ front: [0, 0, 0, 0], back: [0, 0, 0, 0], blurred: true, cut: false });
let frames = null;
let painter = null;

const bytesOf = async (url) => new Uint8Array(await (await fetch(new URL(`../${url}`, import.meta.url))).arrayBuffer());

const METHODS = {
  async open({ task: { task, options, models }, backend, threads, painted }) {
    if (threads) Object.defineProperty(navigator, "hardwareConcurrency", { value: threads }); // tasks take what a machine has
    const { pyodide, python } = await startPython(new URL("webinfer_frames.py", import.meta.url), backend);
    const bytes = await Promise.all(Object.entries(models).map(async ([name, url]) => [name, await bytesOf(url)]));
    frames = await python.get("open_frames")(task, bytes, JSON.stringify(options), backend);
    if (painted) painter = await frames.painter();
    return { version: `webinfer on Pyodide ${pyodide.version}` };
  },
  async look({ frame }) {
    try {
      const bitmap = await painter?.paint(frame, LOOK);
      return bitmap ? { found: 1, parts: { seen_ms: painter.ms }, bitmap } : await frames.look(frame);
    } finally {
      frame.close();
    }
  },
};

answerCalls(METHODS);
