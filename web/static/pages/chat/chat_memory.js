// What a tab remembers of its chat while it is loaded again: what was said, what was being written, and what was typed.
// It ends with the tab, and no other tab sees it.

import { byId } from "../../ui/dom.js";

const FIELDS = ["message-to-send", "instructions", "temperature", "top-p", "max-tokens", "stop-texts", "backend"];
const KEY = "webinfer chat";
const ROLES = ["user", "assistant"];
const isMessage = ({ role, content } = {}) => ROLES.includes(role) && typeof content === "string";

const areMessages = (found) => Array.isArray(found) && found.every(isMessage);

/** {messages, chats, at, fields, model} as `remember` was given them; nothing said where there is nothing, or no memory. */
export function recalled() {
  let found = null;
  try {
    found = JSON.parse(sessionStorage.getItem(KEY));
  } catch {} // no memory here, or not ours
  const messages = areMessages(found?.messages) ? found.messages : [];
  const known = Array.isArray(found?.chats) && found.chats.every(areMessages) && found.chats[found.at];
  const { chats, at } = known ? found : { chats: [messages], at: 0 };
  return { messages, chats, at, fields: found?.fields ?? {}, model: found?.model ?? null };
}

export function remember(state) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(state));
  } catch {} // no memory here, or the chat is too long for it: it lives as long as its page
}

/** What stands in the fields of the page, by their names. */
export const typed = () => Object.fromEntries(FIELDS.map((id) => [id, byId(id).value]));

/** Writes it there again. */
export function typeAgain(fields) {
  for (const id of FIELDS) if (typeof fields[id] === "string") byId(id).value = fields[id];
}
