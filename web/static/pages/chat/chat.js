// The page "Chat": a language model in, messages, and answers token by token. What any of it means is the engine's
// business (webinfer/page/chat_controller.py).

import { bubble, dropLast, following, offer, write } from "./chat_bubbles.js";
import { factsOf, markdownOf, pythonOf } from "./chat_code.js";
import { recalled, remember, typeAgain, typed } from "./chat_memory.js";
import { watchFiles } from "../../media/drops.js";
import { byId, download, el } from "../../ui/dom.js";
import { showWork, startEngine } from "../../engine/engine_page.js";

const KNOWN = "smollm2-135m";
const MEGABYTE = 1e6;
const STAGES = { model: "its file", weights: "its weights go to the engine", elsewhere: "another tab is fetching its file, which this one waits for" };
const root = document.documentElement;
const { calls, troubles, begin } = await startEngine({ started, lost });
const before = recalled();
const messages = before.messages; // {role, content} as they were said
let reply = null; // the text of the answer that is being written
let model = null; // what the engine says of the open model
let opening = null; // how it was opened, to do it again with a fresh engine
let answering = false;
let stored = { complete: false, bytes: 0 }; // weights that this browser keeps

/** What the page says of itself to scripts. */
function tell(more = {}) {
  root.dataset.webinferChat = JSON.stringify({ model, messages, answering, stored, ...more });
}

function fail(error) {
  showWork(null);
  if (error.code !== "stopped") troubles.show({ code: error.code ?? "page", message: error.message });
}

function allow() {
  byId("chat").dataset.hint = model ? "Write a message below." : "No model is open yet. SmolLM2 (98 MB) answers short questions in English; a .gguf file of your own may know more.";
  byId("send").disabled = !model || answering;
  for (const id of ["new-chat", "save-chat"]) byId(id).disabled = !messages.length || answering;
  for (const id of ["open-known", "pick", "forget", "backend"]) byId(id).disabled = answering;
  byId("stop").hidden = !answering;
  byId("chat").setAttribute("aria-busy", String(answering));
  offer(answering || !model ? [] : messages, { again: () => send(takeBack()), change });
}

/** Asks what weights are kept here, and shows it. */
async function showStored() {
  stored = await calls.ask("chat_stored", { model: KNOWN });
  byId("stored").hidden = !stored.bytes;
  const whole = stored.complete ? "The weights are kept in this browser" : "A part of the weights is kept in this browser, the rest is fetched when you open the model";
  byId("stored-text").textContent = `${whole}: ${(stored.bytes / MEGABYTE).toFixed(1)} MB.`;
  tell();
}

/** Deletes them. */
async function forget() {
  answering = true;
  allow();
  try {
    const { freed } = await calls.ask("chat_forget");
    await showStored();
    const left = stored.bytes ? ` ${(stored.bytes / MEGABYTE).toFixed(1)} MB stay: another tab is at them. Close it, then delete them.` : "";
    showWork(null, `${(freed / MEGABYTE).toFixed(1)} MB were freed.${left}${model ? " The open model stays until you leave." : ""}`);
    tell({ freed });
  } catch (error) {
    fail(error);
  } finally {
    answering = false;
    allow();
    tell();
  }
}

/** What the engine says of the model that it opened: with kept weights if they are whole, else with fetched ones. */
async function opened(source) {
  const step = (told) => showWork(told, `Opening the model: ${STAGES[told.stage] ?? told.stage}`);
  const backend = byId("backend").value;
  if (!source.name || !stored.complete) return calls.ask("chat_open", { ...source, backend }, step);
  return calls.ask("chat_open", { kept: source.name, backend }, step).catch((error) => {
    if (["engine-died", "out-of-memory", "stopped"].includes(error.code)) throw error;
    return calls.ask("chat_open", { ...source, backend }, step);
  });
}

/** Opens {name} of a known model or {files: {name: File}}. */
async function open(source) {
  answering = true;
  allow();
  troubles.forget();
  showWork({}, "Opening the model …");
  try {
    model = await opened(source);
    opening = source;
    byId("facts").replaceChildren(...Object.entries(factsOf(model)).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
    await showStored().catch(fail);
    const unkept = source.name && !stored.complete ? " This browser has no room for its weights: the next visit fetches them again." : "";
    showWork(null, `The model is ready.${unkept}`);
  } catch (error) {
    model = null;
    byId("facts").replaceChildren();
    fail(error);
    await showStored().catch(fail);
    showWork(null, error.code === "stopped" ? "Stopped. What has come is kept: opening the model goes on from there." : "No model is open.");
  } finally {
    answering = false;
    allow();
    showPython();
    tell();
    if (document.activeElement === document.body) byId(model ? "message-to-send" : "open-known").focus(); // the button that was pressed could not keep it
  }
}

function openFile(file) {
  if (!answering) open({ files: { [file.name]: file } });
}

function drawing() {
  const number = (id) => Number(byId(id).value);
  return { temperature: number("temperature"), top_p: number("top-p"), max_tokens: number("max-tokens") };
}

function showPython() {
  byId("python").textContent = pythonOf({ name: model?.name ?? KNOWN, backend: byId("backend").value, instructions: instructions(), drawing: drawing() });
}

/** What the model is told before the first message. */
function instructions() {
  const content = byId("instructions").value.trim();
  return content ? [{ role: "system", content }] : [];
}

async function send(content) {
  troubles.forget();
  messages.push({ role: "user", content });
  bubble(messages.at(-1));
  reply = bubble({ role: "assistant", content: "" });
  answering = true;
  allow();
  showWork({}, "Reading …");
  let pieces = 0; // of text: mostly one for each token
  let from = 0;
  const piece = (text) => {
    pieces += 1;
    from ||= performance.now();
    if (pieces === 1) showWork(null, "Answering …"); // the status is read aloud: no number there changes with each token
    following(() => (reply.textContent += text));
    const seconds = (performance.now() - from) / 1000;
    if (pieces > 1) byId("pace").textContent = `${pieces} tokens, ${((pieces - 1) / seconds).toFixed(1)} tokens/s`;
  };
  try {
    const told = await calls.ask("chat_answer", { messages: [...instructions(), ...messages], options: drawing() }, (step) => showWork(step, `Reading: ${step.done} of ${step.total} tokens`), piece);
    messages.push({ role: "assistant", content: told.text });
    write(reply, told.text);
    const speed = told.tokens > 1 ? (1000 * (told.tokens - 1)) / told.answer_ms : 0;
    showWork(null, `${told.tokens} tokens, ${speed.toFixed(1)} tokens/s; ${told.stopped ? "stopped" : "done"}${told.left_out ? `. The oldest ${told.left_out} messages no longer fit: the model does not read them.` : ""}`);
    tell({ told });
  } catch (error) {
    messages.pop(); // what has no answer is no part of the chat: it goes back to where it was written
    dropLast(2);
    byId("message-to-send").value ||= content;
    fail(error);
  } finally {
    reply = null;
    answering = false;
    byId("pace").textContent = "";
    allow();
    tell();
    byId("message-to-send").focus();
  }
}

/** Takes the last question and its answer out of the chat; the question. */
function takeBack() {
  dropLast(2);
  return messages.splice(-2)[0].content;
}

/** Gives the last question back to where it was written. */
function change() {
  byId("message-to-send").value = takeBack();
  allow();
  tell();
  byId("message-to-send").focus();
}

/** Opens again what was open; else gets ready for what may be opened. */
async function started() {
  allow();
  try {
    if (!opening) await showStored();
    const again = opening ?? (before.model === KNOWN && stored.complete ? { name: KNOWN } : null);
    if (again) await open(again);
    else await calls.ask("chat_prepare", { model: KNOWN });
  } catch (error) {
    fail(error);
  }
}

/** What the tab finds again when it is loaded anew: the answer as far as it came, or the question back where it was written. */
function keep() {
  const said = [...messages];
  const fields = typed();
  if (reply?.textContent) said.push({ role: "assistant", content: reply.textContent });
  else if (reply) fields["message-to-send"] ||= said.pop().content;
  remember({ messages: said, fields, model: model?.name ?? null });
}

function restore() {
  typeAgain(before.fields);
  messages.forEach(bubble);
  if (before.model && messages.length) showWork(null, `Open ${before.model === KNOWN ? "the model" : before.model} again to go on with this chat.`);
}

function lost(error) {
  model = null;
  calls.drop(error);
}

byId("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("message-to-send").value.trim();
  if (!text || !model || answering) return;
  byId("message-to-send").value = "";
  send(text);
});
byId("message-to-send").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("say").requestSubmit();
});
byId("stop").addEventListener("click", () => calls.stop());
byId("new-chat").addEventListener("click", () => {
  messages.length = 0;
  byId("chat").replaceChildren();
  allow();
  tell();
});
byId("open-known").addEventListener("click", () => open({ name: KNOWN }));
byId("pick").addEventListener("click", () => byId("file").click());
byId("forget").addEventListener("click", forget);
byId("save-chat").addEventListener("click", () => download("chat.md", [markdownOf([...instructions(), ...messages])], "text/markdown"));
byId("file").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  if (file) openFile(file);
  target.value = "";
});
watchFiles(byId("chat"), ([file]) => openFile(file), (error) => troubles.show(error));
for (const id of ["temperature", "top-p", "max-tokens", "backend", "instructions"]) byId(id).addEventListener("input", showPython);
addEventListener("pagehide", keep);
restore();
showPython();
begin();
