// The chats of this tab: one is open, the others wait.

import { byId, el } from "../../ui/dom.js";

const LONGEST = 40; // characters of a title
const titleOf = (messages) => messages[0]?.content.trim().replace(/\s+/g, " ").slice(0, LONGEST) || "New chat";

export class ChatList {
  #messages;
  #chats;
  #at;
  #opened;

  /** `messages` is the list of the open chat, which stays the same list; `chats` are all of them, of which `at` is open; `opened()` is called after another was opened. */
  constructor(messages, { chats, at }, opened) {
    [this.#messages, this.#chats, this.#at, this.#opened] = [messages, chats.length ? chats : [[]], at, opened];
  }

  /** {chats, at}, as the constructor takes them. */
  get state() {
    return { chats: this.#chats.map((one, i) => (i === this.#at ? [...this.#messages] : one)), at: this.#at };
  }

  #open(at, chats) {
    [this.#chats, this.#at] = [chats, at];
    this.#messages.splice(0, Infinity, ...chats[at]);
    this.#opened();
  }

  /** Opens a chat with nothing in it. */
  begin() {
    const { chats } = this.state;
    this.#open(chats.length, [...chats, []]);
  }

  /** Forgets the open chat and opens the one before it. */
  drop() {
    const left = this.state.chats.filter((_, i) => i !== this.#at);
    this.#open(Math.max(0, this.#at - 1), left.length ? left : [[]]);
  }

  /** Lists the chats, if there are several; they cannot be changed while one is `busy`. */
  show(busy) {
    const { chats, at } = this.state;
    byId("chats").hidden = chats.length < 2;
    byId("chats").replaceChildren(...chats.map((one, i) => {
      const open = () => this.#open(i, this.state.chats);
      return el("li", {}, el("button", { type: "button", text: titleOf(one), "aria-pressed": String(i === at), disabled: busy, on: { click: open } }));
    }));
  }
}
