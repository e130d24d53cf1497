// The benchmark of text: prompts that webinfer and wllama go on with in turns. Reads ../text.json, shows and posts the figures.

import { about } from "../adapter.js";
import { median } from "../conductor.js";
import { modelOf } from "../pieces.js";
import { concluded, report } from "../report.js";
import { Remote, setLimit } from "../remote.js";
import { Wllama } from "./wllama.js";

const status = document.getElementById("status");
const body = document.querySelector("#results tbody");

/** webinfer in a worker, as its chat page has it. */
class Webinfer {
  async open(entry, model) {
    this.remote = new Remote("webinfer", new URL("./worker.js", import.meta.url));
    return this.remote.call("open", { ...entry, model });
  }

  write(prompt, tokens) {
    return this.remote.call("write", { prompt, tokens });
  }

  long(tokens) {
    return this.remote.call("long", { tokens });
  }

  end() {
    this.remote?.end();
  }
}

const SYSTEMS = { webinfer: Webinfer, wllama: Wllama };

async function fail(row, error) {
  row.error = String(error?.message ?? error).trim().split("\n").slice(-3).join(" ");
  row.running.end();
  await tell(`${named(row)}: failed: ${row.error}`);
}

/** Shows what happens, and posts it with the page's clock. */
async function tell(text) {
  status.textContent = text;
  await report("doing", `${(performance.now() / 1000).toFixed(1)} s: ${text}`);
}

const named = ({ system, backend, threads }) => `${system} on ${backend}, ${threads} threads`;

async function opened(entry, model, config) {
  const row = { ...entry, turns: [], running: new SYSTEMS[entry.system]() };
  try {
    await tell(`${named(row)}: opens`);
    const begin = performance.now();
    Object.assign(row, await row.running.open(entry, model));
    row.open_ms = performance.now() - begin;
    await tell(`${named(row)}: is open, writes for the first time`);
    await row.running.write(config.prompts[0], Math.min(16, config.tokens)); // machine code becomes final
  } catch (error) {
    await fail(row, error);
  }
  return row;
}

async function turn(row, prompt, tokens) {
  try {
    await tell(`${named(row)}: its turn`);
    row.turns.push(await row.running.write(prompt, tokens));
  } catch (error) {
    await fail(row, error);
  }
}

async function longRun(row, tokens) {
  try {
    await tell(`${named(row)}: an answer of ${tokens} tokens`);
    row.long = await row.running.long(tokens);
  } catch (error) {
    await fail(row, error);
  }
}

/** Tokens a second of each turn: of the prompt, and of the answer but for its first token. */
const speeds = (turns) => ({
  prompt: turns.map(({ prompt_words: tokens, prompt_ms: ms }) => (1000 * tokens) / ms),
  answer: turns.map(({ tokens, answer_ms: ms }) => (1000 * tokens) / ms),
});

function figures({ turns }, model) {
  const { prompt, answer } = speeds(turns);
  const best = Math.max(...answer);
  return {
    prompt_words: median(turns.map((turn) => turn.prompt_words)), answer_words: median(turns.map((turn) => turn.tokens)),
    prompt: median(prompt), prompt_best: Math.max(...prompt), answer: median(answer), answer_best: best,
    gbytes: (best * model.bytes) / 1e9, text: turns[0].text,
  };
}

function show(row) {
  const line = body.insertRow();
  const told = row.error ? ["–", row.error, ""] : [row.prompt.toFixed(1), row.answer.toFixed(1), `${(row.open_ms / 1000).toFixed(1)} s`];
  for (const text of [row.system, row.threads, ...told]) line.insertCell().textContent = text;
}

async function run() {
  const config = await (await fetch(new URL("../text.json", import.meta.url))).json();
  setLimit(config.limit_ms);
  await report("about", { ...(await about(true)), rounds: config.rounds, tokens: config.tokens, model: config.name });
  const rows = [];
  const model = await modelOf(config);
  for (const entry of config.entries) rows.push(await opened(entry, model, config));
  for (let round = 0; round < config.rounds; round++) {
    await tell(`round ${round + 1} of ${config.rounds}`);
    const shift = round % rows.length; // the order rotates: none always runs behind the same one
    const prompt = config.prompts[1 + round]; // nobody remembers it
    for (const row of [...rows.slice(shift), ...rows.slice(0, shift)]) if (!row.error) await turn(row, prompt, config.tokens);
  }
  if (config.long) for (const row of rows) if (row.running.long && !row.error) await longRun(row, config.long);
  for (const row of rows) {
    if (!row.error) Object.assign(row, figures(row, config));
    row.running.end();
    const { running, turns, ...told } = row;
    show(told);
    await report("row", told);
  }
  status.textContent = "done";
}

concluded(run, (text) => (status.textContent = text));
