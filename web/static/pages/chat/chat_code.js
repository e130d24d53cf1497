// What the page "Chat" says in other forms: the Python that does the same, the chat as a file, the facts of a model; and what its
// fields say.

import { byId } from "../../ui/dom.js";

const NAMES = { system: "Instructions", user: "You", assistant: "Model" };
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Messages {role, content} as Markdown. */
export const markdownOf = (messages) => messages.map(({ role, content }) => `**${NAMES[role]}**\n\n${content}\n`).join("\n");

/** What the engine says of an open model, {title: text}. */
export const factsOf = (model) => ({
  Model: model.name,
  "Runs on": model.backend,
  Architecture: `${model.architecture}, ${model.layers} layers`,
  Weights: megabytes(model.weights),
  Cache: `${megabytes(model.cache)} for ${model.context} tokens`,
  "Opened in": `${(model.ms / 1000).toFixed(1)} s`,
});

/** The code for a model on a backend, with `instructions` as messages and `drawing` as the engine takes it. */
export function pythonOf({ name, backend, instructions, drawing: { temperature, top_p: share, max_tokens: most, stop } }) {
  const chosen = backend === "auto" ? "" : `\n    backend="${backend}",`;
  return `import webinfer

generator = await webinfer.pipeline(
    "text-generation",
    ${JSON.stringify(name)},
    overflow="slide",${chosen}
)
chat = [${instructions.map(({ content }) => `\n    {"role": "system", "content": ${JSON.stringify(content)}},`).join("")}
    {"role": "user", "content": "…"},
]
tokens = generator.stream(
    chat,
    temperature=${temperature},
    top_p=${share},
    max_tokens=${most},${stop.length ? `\n    stop=${JSON.stringify(stop)},` : ""}
)
async for piece in tokens:
    print(piece, end="")`;
}

/** How tokens are drawn, as the page's fields say. */
export function drawing() {
  const number = (id) => Number(byId(id).value);
  return { temperature: number("temperature"), top_p: number("top-p"), max_tokens: number("max-tokens"), stop: byId("stop-texts").value.split("\n").filter(Boolean) };
}

/** What the model is told before the first message. */
export function instructions() {
  const content = byId("instructions").value.trim();
  return content ? [{ role: "system", content }] : [];
}
