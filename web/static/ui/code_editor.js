// An editor of Python: CodeMirror in a shadow root, where its styles are sheets that no rule of the page forbids.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec, RangeSet, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, gutterLineClass, GutterMarker, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const LABEL = "Python code. Tab indents; Escape, then Tab leaves the editor";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "light-dark(#55606c, #9aa6b2)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.moduleKeyword], color: "light-dark(#7a4fc0, #c4a5ff)" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#17703a, #8ddc9f)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#9a4a00, #ffb263)" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], color: "light-dark(#1f5fbf, #8fbcff)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--ground)", border: "1px solid var(--line)", borderRadius: "9px" },
  "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { font: "0.875rem/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", maxHeight: "32rem", overflow: "auto", borderRadius: "9px" },
  ".cm-content": { padding: ".6rem 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 .9rem 0 .6rem" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--quiet)", border: "none", borderRight: "1px solid var(--line)" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "2.4rem", padding: "0 .5rem 0 .2rem" },
  "& ::selection, .cm-line ::selection": { backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--accent) 22%, transparent)" },
  ".cm-gutterElement.mistake": { color: "var(--bad)", fontWeight: "700" },
  ".cm-gutterElement.mistake::before": { content: "'▸ ' / ''" },
  ".cm-line.mistake": { backgroundColor: "var(--bad-ground)" },
});

const marking = StateEffect.define(); // where a line begins

class Mistake extends GutterMarker {
  elementClass = "mistake";
}

/** Marks of one kind on the line of an error, until the text changes. */
const marks = (mark, provide) => StateField.define({
  create: () => RangeSet.empty,
  update(set, { docChanged, effects }) {
    const found = effects.find((effect) => effect.is(marking));
    if (found) return found.value === null ? RangeSet.empty : RangeSet.of([mark.range(found.value)]);
    return docChanged ? RangeSet.empty : set;
  },
  provide,
});

const mistakes = [
  marks(Decoration.line({ class: "mistake" }), (field) => EditorView.decorations.from(field)),
  marks(new Mistake(), (field) => gutterLineClass.from(field)),
];

/** Typing over a selection is done here: a browser would keep its colours by an inline style, which the page forbids. */
function typeOver(event, view) {
  const { inputType, data, isComposing } = event;
  if (inputType !== "insertText" || !data || isComposing || view.state.selection.main.empty) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

export class CodeEditor {
  #view;

  /** An editor inside of an element; `run()` hears Ctrl or Cmd and Enter. */
  constructor(host, text, run) {
    const asked = () => {
      run();
      return true;
    };
    const extensions = [
      lineNumbers(), highlightSpecialChars(), history(), indentOnInput(), bracketMatching(), indentUnit.of("    "),
      new LanguageSupport(pythonLanguage), syntaxHighlighting(colours), EditorView.lineWrapping, theme, mistakes,
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: asked }])),
      keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ "aria-label": LABEL, spellcheck: "false", tabindex: "0" }),
      EditorView.domEventHandlers({ beforeinput: typeOver }),
    ];
    const root = host.attachShadow({ mode: "open" });
    this.#view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: root, root });
  }

  get text() {
    return this.#view.state.doc.toString();
  }

  /** Puts another text in place of the whole one; Undo brings that back. */
  set text(insert) {
    this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert } });
  }

  /** Marks a line, from 1; null marks none. */
  mark(number) {
    const { doc } = this.#view.state;
    const line = number === null ? null : doc.line(Math.min(Math.max(1, number), doc.lines));
    const show = line ? [EditorView.scrollIntoView(line.from)] : [];
    this.#view.dispatch({ effects: [marking.of(line?.from ?? null), ...show] });
  }

  /** Puts the cursor into a line. */
  visit(number) {
    const { doc } = this.#view.state;
    this.#view.dispatch({ selection: { anchor: doc.line(Math.min(number, doc.lines)).from }, scrollIntoView: true });
    this.#view.focus();
  }
}
