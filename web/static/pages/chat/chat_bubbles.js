// The messages of the page "Chat".

import { byId, el } from "../../ui/dom.js";

/** Puts a message on the page; the element of its text. */
export function bubble({ role, content }) {
  const text = el("p", { class: "said", text: content });
  byId("chat").append(el("li", { class: role }, el("strong", { text: role === "user" ? "You" : "Model" }), text));
  byId("chat").scrollTop = byId("chat").scrollHeight;
  return text;
}

/** Changes the chat, whose end stays in sight if it was. */
export function following(change) {
  const chat = byId("chat");
  const follows = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 40;
  change();
  if (follows) chat.scrollTop = chat.scrollHeight;
}
