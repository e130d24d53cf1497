// The Python that does what the page "Chat" does.

/** The code for a model on a backend, with `instructions` as messages and `drawing` as the engine takes it. */
export function pythonOf({ name, backend, instructions, drawing: { temperature, top_p: share, max_tokens: most } }) {
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
    max_tokens=${most},
)
async for piece in tokens:
    print(piece, end="")`;
}
