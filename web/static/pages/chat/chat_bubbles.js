// The messages of the page "Chat".

import { copyButton } from "../../ui/copy_button.js";
import { byId, el } from "../../ui/dom.js";
import { elementsOf } from "../../ui/markdown.js";

/** Puts a message on the page; the element of its text. */
export function bubble({ role, content }) {
  const text = el("div", { class: "said" });
  byId("chat").append(el("li", { class: role }, el("strong", { text: role === "user" ? "You" : "Model" }), text));
  if (role === "user") text.textContent = content;
  else write(text, content);
  byId("chat").scrollTop = byId("chat").scrollHeight;
  return text;
}

/** Writes an answer: its Markdown as elements. */
export function write(text, content) {
  following(() => text.replaceChildren(...elementsOf(content)));
}

/** Changes the chat, whose end stays in sight if it was. */
export function following(change) {
  const chat = byId("chat");
  const follows = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 40;
  change();
  if (follows) chat.scrollTop = chat.scrollHeight;
}

/** Takes the last messages off the page. */
export function dropLast(count) {
  for (const said of [...byId("chat").children].slice(-count)) said.remove();
}

/** Gives every message what can be done with it: an answer is copied, the last one written again, the last question changed. */
export function offer(messages, { again, change }) {
  const button = (text, click) => el("button", { type: "button", class: "link", text, on: { click } });
  [...byId("chat").children].forEach((said, i) => {
    const { role, content } = messages[i] ?? {};
    const latest = i >= messages.length - 2;
    const made = role === "assistant" ? [copyButton("link", () => content, said.querySelector(".said")), ...(latest ? [button("Regenerate", again)] : [])] : role && latest ? [button("Edit", change)] : [];
    said.querySelector(".actions")?.remove();
    if (made.length) following(() => said.append(el("div", { class: "actions" }, made)));
  });
}
