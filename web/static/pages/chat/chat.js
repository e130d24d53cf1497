// The page "Chat": a language model in, messages, and answers token by token. What any of it means is the engine's
// business (webinfer/page/chat_controller.py).

import { bubble, dropLast, following, offer, write } from "./chat_bubbles.js";
import { drawing, factsOf, instructions, markdownOf, pythonOf } from "./chat_code.js";
import { ChatList } from "./chat_list.js";
import { recalled, remember, typeAgain, typed } from "./chat_memory.js";
import { freedText, openModel, roomText, stageOf, storedText } from "./chat_models.js";
import { watchFiles } from "../../media/drops.js";
import { byId, download, el } from "../../ui/dom.js";
import { showWork, startEngine } from "../../engine/engine_page.js";

const KNOWN = "smollm2-135m";
const RETRIED = ["device-lost", "engine-died", "engine-silent"];
const root = document.documentElement;
const { calls, troubles, begin } = await startEngine({ started, lost });
const before = recalled();
const messages = before.messages; // {role, content} as they were said
const list = new ChatList(messages, before, showChat);
let reply = null; // the text of the answer that is being written
let model = null; // what the engine says of the open model
let opening = null; // how it was opened, to do it again with a fresh engine
let answering = false;
let engine = ""; // "runs", "restarts" after its end, or nothing
let unanswered = null; // what was asked when the engine ended or the GPU was lost: it is asked once more by itself
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
  list.show(answering);
  for (const id of ["new-chat", "save-chat", "delete-chat"]) byId(id).disabled = !messages.length || answering;
  for (const id of ["open-known", "pick", "forget", "backend"]) byId(id).disabled = answering || engine !== "runs";
  byId("stop").hidden = !answering;
  byId("chat").setAttribute("aria-busy", String(answering));
  offer(answering || !model ? [] : messages, { again: () => send(takeBack()), change });
}

/** Shows the open chat from its first message on. */
function showChat() {
  byId("chat").replaceChildren();
  messages.forEach(bubble);
  allow();
  tell();
}

/** Asks what weights are kept here, and shows it. */
async function showStored() {
  stored = await calls.ask("chat_stored", { model: KNOWN });
  byId("stored").hidden = !stored.bytes;
  byId("stored-text").textContent = storedText(stored);
  tell();
}

/** Deletes them. */
async function forget() {
  answering = true;
  allow();
  try {
    const { freed } = await calls.ask("chat_forget");
    await showStored();
    showWork(null, freedText(freed, stored, model));
    tell({ freed });
  } catch (error) {
    fail(error);
  } finally {
    answering = false;
    allow();
    tell();
  }
}

/** Opens {name} of a known model or {files: {name: File}}. */
async function open(source) {
  answering = true;
  allow();
  troubles.forget();
  showWork({}, "Opening the model …");
  try {
    const step = (told) => showWork(told, stageOf(told));
    model = await openModel(calls, source, { backend: byId("backend").value, kept: stored.complete }, step);
    opening = source;
    byId("facts").replaceChildren(...Object.entries(factsOf(model)).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
    await showStored().catch(fail);
    const unkept = source.name && !stored.complete ? " This browser has no room to store the weights: the next visit downloads them again." : "";
    showWork(null, `The model is ready.${unkept}`);
  } catch (error) {
    model = null;
    byId("facts").replaceChildren();
    fail(error);
    await showStored().catch(fail);
    showWork(null, error.code === "stopped" ? "Stopped. What was downloaded is kept: opening the model continues from there." : "No model is open.");
  } finally {
    answering = false;
    allow();
    showPython();
    tell();
    if (document.activeElement === document.body) byId(model ? "message-to-send" : "open-known").focus(); // the button that was pressed could not keep it
  }
}

function openFile(file) {
  if (!answering && engine === "runs") open({ files: { [file.name]: file } });
}

function showPython() {
  byId("python").textContent = pythonOf({ name: model?.name ?? KNOWN, backend: byId("backend").value, instructions: instructions(), drawing: drawing() });
}

async function send(content, retried = false) {
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
    messages.pop(); // what has no answer is not a part of the chat: it goes back to where it was written
    dropLast(2);
    if (!retried && RETRIED.includes(error.code) && engine) unanswered = content;
    else byId("message-to-send").value ||= content;
    fail(error);
    showWork(null, unanswered ? "The answer starts over once the model is open." : "No answer: see the message below.");
  } finally {
    reply = null;
    answering = false;
    byId("pace").textContent = "";
    allow();
    tell();
    byId("message-to-send").focus();
  }
  if (unanswered && engine === "runs") await open(opening).then(goOn); // a GPU was lost: the engine goes on with another device
}

/** Asks once more what was not answered, or gives it back to where it was written. */
async function goOn() {
  const content = unanswered;
  unanswered = null;
  if (content !== null && model) await send(content, true);
  else byId("message-to-send").value ||= content ?? "";
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
  engine = "runs";
  allow();
  try {
    if (!opening) await showStored();
    const again = opening ?? (before.model === KNOWN && stored.complete ? { name: KNOWN } : null);
    if (again) await open(again).then(goOn);
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
  const { chats, at } = list.state;
  remember({ messages: said, chats: chats.with(at, said), at, fields, model: model?.name ?? null });
}

function restore() {
  typeAgain(before.fields);
  messages.forEach(bubble);
  if (before.model && messages.length) showWork(null, `Open ${before.model === KNOWN ? "the model" : before.model} again to go on with this chat.`);
}

function lost(error) {
  model = null;
  engine = error.restarts ? "restarts" : "";
  calls.drop(error);
  if (unanswered && !engine) goOn(); // it died again
  allow();
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
byId("new-chat").addEventListener("click", () => list.begin());
byId("delete-chat").addEventListener("click", () => list.drop());
byId("templates").addEventListener("change", ({ target }) => {
  byId("instructions").value = target.value;
  showPython();
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
for (const id of ["temperature", "top-p", "max-tokens", "stop-texts", "backend", "instructions"]) byId(id).addEventListener("input", showPython);
addEventListener("pagehide", keep);
restore();
showPython();
roomText().then((text) => (byId("room").textContent = text));
begin();
