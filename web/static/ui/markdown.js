// A model's Markdown as elements. The text is cut by a library, and each part becomes an element of its own kind: HTML in it
// is shown as text, and never becomes part of the page.

import { lexer } from "marked";
import { el } from "./dom.js";

const INLINE = { strong: "strong", em: "em", del: "del" };
const LINKS = ["http:", "https:", "mailto:"];

const inside = ({ tokens, text }) => (tokens ? tokens.map(part) : [text]);

function link(token) {
  const known = URL.canParse(token.href) && LINKS.includes(new URL(token.href).protocol);
  return known ? el("a", { href: token.href, target: "_blank", rel: "noopener noreferrer" }, inside(token)) : el("span", {}, token.raw);
}

function table({ header, rows }) {
  const line = (tag, cells) => el("tr", {}, cells.map((cell) => el(tag, tag === "th" ? { scope: "col" } : {}, inside(cell))));
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, line("th", header)), el("tbody", {}, rows.map((cells) => line("td", cells)))));
}

/** The element, or the text, of one part. */
function part(token) {
  if (INLINE[token.type]) return el(INLINE[token.type], {}, inside(token));
  switch (token.type) {
    case "space": return null;
    case "heading": return el("p", {}, el("strong", {}, inside(token))); // no heading of the page
    case "paragraph": return el("p", {}, inside(token));
    case "code": return el("pre", {}, el("code", { text: token.text }));
    case "codespan": return el("code", { text: token.text });
    case "blockquote": return el("blockquote", {}, inside(token));
    case "list": return el(token.ordered ? "ol" : "ul", token.ordered && token.start !== 1 ? { start: token.start } : {}, token.items.map((item) => el("li", {}, inside(item))));
    case "table": return table(token);
    case "link": return link(token);
    case "br": return el("br");
    case "hr": return el("hr");
    case "text": return token.tokens ? inside(token) : token.text;
    case "escape": return token.text;
    default: return token.raw; // HTML, pictures and what a later release may cut
  }
}

/** The elements of a text in Markdown. */
export const elementsOf = (text) => lexer(text, { gfm: true, breaks: true }).map(part).flat(Infinity).filter((made) => made !== null);
