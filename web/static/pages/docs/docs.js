// The documentation's pages: a search over all of them, and a copy button at every piece of code.

import MiniSearch from "minisearch";
import { copyButton } from "../../ui/copy_button.js";
import { byId, el, say } from "../../ui/dom.js";

const MOST = 12; // results
const AROUND = 90; // characters of text before and behind the first match

const home = new URL(document.documentElement.dataset.home, document.baseURI).pathname;
let index = null; // a promise of the search's index, from the first search on

/** The sections of all pages, which the server lists beside them: {id, address, page, heading, text}. */
async function sections() {
  const answer = await fetch(`${home}docs/search.json`);
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

async function readIndex() {
  const found = new MiniSearch({ fields: ["heading", "page", "text"], storeFields: ["address", "page", "heading", "text"] });
  found.addAll(await sections());
  return found;
}

/** What stands around the first of the words in a text. */
function excerpt(text, words) {
  const at = Math.max(0, Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0), text.length));
  const begin = at >= text.length ? 0 : Math.max(0, at - AROUND);
  const end = Math.min(text.length, begin + 2 * AROUND);
  return `${begin ? "… " : ""}${text.slice(begin, end).trim()}${end < text.length ? " …" : ""}`;
}

function row({ address, page, heading, text, terms }) {
  const title = heading === page ? page : `${page}: ${heading}`;
  return el("li", {}, el("a", { href: `${home}${address.slice(1)}` }, el("strong", { text: title }), el("span", { class: "quiet", text: excerpt(text, terms) })));
}

async function search() {
  const words = byId("search").value.trim();
  let found = [];
  try {
    index ??= readIndex();
    found = words ? (await index).search(words, { prefix: true, fuzzy: 0.15, combineWith: "AND", boost: { heading: 3, page: 2 } }) : [];
  } catch ({ message }) {
    index = null; // the next key asks again
    return say(byId("search-status"), `The search could not be loaded: ${message}.`);
  }
  if (words !== byId("search").value.trim()) return; // typed on meanwhile
  byId("results").replaceChildren(...found.slice(0, MOST).map(row));
  say(byId("search-status"), words ? `${found.length || "No"} ${found.length === 1 ? "result" : "results"}` : "");
}

/** A piece of code as it is typed: terminals' prompts and what they printed stay behind. */
function typedIn(code) {
  if (!code.querySelector(".gp, .go")) return code.textContent;
  const lines = code.textContent.split("\n").filter((line) => line.startsWith("$ "));
  return lines.map((line) => line.slice(2)).join("\n");
}

for (const code of document.querySelectorAll("pre.code:not(.output)")) {
  const holder = el("div", { class: "holder" });
  code.replaceWith(holder);
  holder.append(code, copyButton("copy", () => typedIn(code), code));
}
byId("search").addEventListener("input", search);
byId("search-box").hidden = false;
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  byId("search").focus();
});
