// Compiles Python scripts with the Python of Pyodide, so that a browser need not: marshalled code of modules.
//
//   node compiled.mjs '{"pyodide": folder, "scripts": [path, ...]}'
//
// Writes NAME.code beside each NAME.py.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const COMPILE = `
import marshal
lambda text, name: marshal.dumps(compile(text, name, "exec", dont_inherit=True))
`;

const { pyodide: folder, scripts } = JSON.parse(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: `${folder}/` });
const compile = pyodide.runPython(COMPILE);
for (const script of scripts) {
  const code = compile(readFileSync(script, "utf8"), script.split("/").at(-1));
  writeFileSync(script.replace(/\.py$/, ".code"), code.toJs());
}
