// The benchmark of ONNX decoders: prompts and answers of fixed tokens, webinfer and ONNX Runtime Web in turns.
// Reads ../decoder.json, shows and posts the figures.

import { about } from "../adapter.js";
import { median } from "../conductor.js";
import { modelOf } from "../pieces.js";
import { concluded, report } from "../report.js";
import { Remote, setLimit } from "../remote.js";

// Of the largest number compared; what is further off does not compute this model. On WebGPU ONNX Runtime Web 1.30 is 2 %
// from itself on wasm, whose numbers are ours to 2e-7 (4 bits, prompts of 40, SwiftShader, 2026-11-28).
const FAR = 0.05;
const status = document.getElementById("status");
const body = document.querySelector("#results tbody");
const named = ({ system, backend, threads }) => `${system} on ${backend}, ${threads} threads`;

async function tell(text) {
  status.textContent = text;
  await report("doing", `${(performance.now() / 1000).toFixed(1)} s: ${text}`);
}

/** What a call of a row's system comes to; null, and an error in the row, if it fails. */
async function asked(row, method, options) {
  try {
    await tell(`${named(row)}: ${method}`);
    return await row.remote.call(method, options);
  } catch (error) {
    row.error = String(error?.message ?? error).trim().split("\n").slice(-3).join(" ");
    row.remote.end();
    await tell(`${named(row)}: failed: ${row.error}`);
    return null;
  }
}

async function opened(entry, model, turn) {
  const row = { ...entry, turns: [], remote: new Remote(entry.system, new URL(`./${entry.system}_worker.js`, import.meta.url)) };
  Object.assign(row, await asked(row, "open", { ...entry, model }));
  if (!row.error) row.first = await asked(row, "write", turn);
  if (!row.error) await asked(row, "write", turn); // machine code becomes final
  return row;
}

/** The largest difference between the last numbers of two systems, as a share of the largest. */
const apart = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i]))) / Math.max(...b.map(Math.abs));

function figures({ turns, first }) {
  const prompts = turns.map((turn) => turn.prompt_ms), tokens = turns.map((turn) => median(turn.token_ms));
  return {
    prompt: median(prompts), prompt_best: Math.min(...prompts), token: median(tokens), token_best: Math.min(...tokens),
    first_prompt: first.prompt_ms, first_token: first.token_ms[0],
  };
}

function show(row) {
  const line = body.insertRow();
  const told = row.error ? ["–", "–", "–", row.error] : [row.prompt, row.token, row.first_prompt, row.load_ms].map((ms) => ms.toFixed(1));
  for (const text of [row.system, row.backend, row.threads, ...told]) line.insertCell().textContent = text;
}

async function run() {
  const config = await (await fetch(new URL("../decoder.json", import.meta.url))).json();
  const turn = { prompt: config.prompt, tokens: config.tokens };
  setLimit(config.limit_ms);
  await report("about", { ...(await about(true)), rounds: config.rounds, ...turn, model: config.name });
  const rows = [];
  const model = await modelOf(config);
  for (const entry of config.entries) rows.push(await opened(entry, model, turn));
  for (let round = 0; round < config.rounds; round++) {
    const shift = round % rows.length; // the order rotates: none always runs behind the same one
    for (const row of [...rows.slice(shift), ...rows.slice(0, shift)]) {
      const found = row.error ? null : await asked(row, "write", turn);
      if (found) row.turns.push(found);
    }
  }
  const judge = rows.find((row) => row.system === "ortweb" && !row.error)?.turns[0].last;
  for (const row of rows) {
    row.remote.end();
    if (!row.error && judge) row.apart = apart(row.turns[0].last, judge);
    if (row.apart > FAR || Number.isNaN(row.apart)) row.error = `its numbers are ${row.apart} of their range from ONNX Runtime Web's`;
    if (!row.error) Object.assign(row, figures(row));
    const { remote, turns, first, ...told } = row;
    show(told);
    await report("row", told);
  }
  status.textContent = "done";
}

concluded(run, (text) => (status.textContent = text));
