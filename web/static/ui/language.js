// Shows the page in another language, by a catalogue of English texts and what they are there (static/languages). Texts are
// exchanged where they stand and as they come, so that no script needs to know of languages. {} in an entry is any text,
// which is looked up too, or a number; {2} in a translation is the second of them. Plural forms are entries of their own.

const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt", "data-hint", "label"];
const FOREIGN = "code, pre, textarea, script, style, canvas, [translate=no], [lang]:not(html), .cm-editor, .said"; // texts that are nobody's to translate
const NUMBER = /^[−-]?\d{1,3}(,?\d{3})*(\.\d+)?( (MB|kB|GB|ms|s|%|bytes|pixels|frames\/s|×))?$/;
const SENTENCES = /(?<=[.!?…”)]) (?=[A-Z“(\d{])/;

const root = document.documentElement;
const english = new WeakMap(); // text node, or element -> {shown, was}, or {attribute: {shown, was}}
let catalogue = null; // {language, exact: Map, patterns: [{test, text}]}
let observer = null;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const spaced = (text) => text.replace(/\s+/g, " ");

/** A catalogue as it is looked up: exact texts first, then patterns, those with most words of their own first. */
function prepared(language, entries) {
  const all = Object.entries(entries);
  const patterns = all.filter(([key]) => key.includes("{}")).map(([key, text]) => ({ length: key.replaceAll("{}", "").length, test: new RegExp(`^${key.split("{}").map(escaped).join("(.+?)")}$`), text }));
  return { language, exact: new Map(all), patterns: patterns.sort((a, b) => b.length - a.length) };
}

function number(text) {
  if (!NUMBER.test(text)) return null;
  return text.replace(/[.,]/g, (sign) => (sign === "." ? "," : ".")).replace(/ bytes$/, " Bytes").replace(/ pixels$/, " Pixel").replace(/ frames\/s$/, " Bilder/s");
}

/** One text or sentence in the language; null if the catalogue has none. */
function looked(text) {
  const own = catalogue.exact.get(text) ?? number(text);
  if (own !== null && own !== undefined) return own;
  for (const { test, text: translation } of catalogue.patterns) {
    const found = test.exec(text);
    if (!found) continue;
    let next = 0;
    return translation.replace(/\{(\d*)\}/g, (_, place) => translated(found[place || (next += 1)]));
  }
  return null;
}

/** A text whose parts are looked up: each, or null if none is known. */
function piecewise(text, between, glue) {
  const parts = text.split(between);
  if (parts.length < 2) return null;
  const found = parts.map((part) => looked(part) ?? (between === SENTENCES ? piecewise(part, ", ", ", ") : null));
  return found.some((part) => part !== null) ? parts.map((part, at) => found[at] ?? part).join(glue) : null;
}

/** A text in the language of the catalogue: as a whole, else by sentences, else by commas; as it is where nothing is known of it. */
export function translated(text) {
  const sentences = text.split(SENTENCES);
  const each = sentences.length > 1 && !catalogue.exact.has(text) && sentences.map(looked); // before patterns, which may reach over their ends
  if (each && each.every((part) => part !== null)) return each.join(" ");
  return looked(text) ?? piecewise(text, SENTENCES, " ") ?? piecewise(text, ", ", ", ") ?? text;
}

function exchanged(text) {
  const [, before, inner, after] = /^(\s*)([^]*?)(\s*)$/.exec(text);
  return inner ? before + translated(spaced(inner)) + after : text;
}

function changeText(node) {
  const known = english.get(node);
  if (known?.shown === node.data || !/\p{L}|\d/u.test(node.data) || node.parentElement?.closest(FOREIGN)) return;
  const was = node.data;
  const shown = exchanged(was);
  english.set(node, { shown, was });
  if (shown !== was) node.data = shown;
}

function changeAttributes(element) {
  if (element.closest(FOREIGN) && !element.matches("textarea, canvas")) return;
  const known = english.get(element) ?? {};
  for (const name of ATTRIBUTES) {
    const was = element.getAttribute(name);
    if (!was || known[name]?.shown === was) continue;
    known[name] = { was, shown: exchanged(was) };
    if (known[name].shown !== was) element.setAttribute(name, known[name].shown);
  }
  english.set(element, known);
}

/** All texts and attributes below a node. */
function* below(node) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let next = node; next; next = walker.nextNode()) yield next;
}

function change(node) {
  for (const one of below(node)) (one.nodeType === Node.TEXT_NODE ? changeText : one.nodeType === Node.ELEMENT_NODE ? changeAttributes : () => {})(one);
}

function restore() {
  for (const node of below(root)) {
    const known = english.get(node);
    if (!known) continue;
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data === known.shown) node.data = known.was;
    } else for (const [name, { was, shown }] of Object.entries(known)) if (node.getAttribute(name) === shown) node.setAttribute(name, was);
    english.delete(node);
  }
}

function watch() {
  observer ??= new MutationObserver((records) => {
    for (const { type, target, addedNodes } of records) {
      if (type === "childList") addedNodes.forEach(change);
      else if (type === "characterData") changeText(target);
      else changeAttributes(target);
    }
  });
  observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES });
}

/** Shows the page in a language, "en" as it was written; `button` switches, `entries` is a promise of the catalogue. */
export async function show(language, button, entries) {
  const titles = button.dataset;
  if (language === "en") {
    observer?.disconnect();
    restore();
    delete globalThis.englishOf;
  } else {
    catalogue ??= prepared(language, await entries);
    globalThis.englishOf = (node) => english.get(node)?.was ?? node.data; // for say() of dom.js, which compares
    change(root);
    watch();
  }
  root.lang = language;
  button.lang = language === "en" ? titles.language : "en";
  button.textContent = language === "en" ? titles.own : titles.other;
}
