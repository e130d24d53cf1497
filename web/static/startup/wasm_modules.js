// WebAssembly modules of hosts as they are: browsers stream only what is declared as application/wasm.

/** The module of a response. The browser gets the response itself where it can: only so it finds the machine code that it kept. */
export async function compiled(response) {
  const [type] = (response.headers.get("Content-Type") ?? "").split(";");
  if (type.trim().toLowerCase() === "application/wasm") return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}
