// Compiles modules with the Python of Pyodide, so that no browser need: an archive of sources becomes one of code.
//
//   node late_code.mjs '{"pyodide": folder, "input": zip, "output": zip}'
//
// NAME.py becomes NAME.pyc, which imports take without asking for a source; other members stay as they are. Tracebacks
// know of a function's lines only the first: the lines of minified sources say little, and are a quarter of the bytes.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const COMPILE = `${readFileSync(new URL("lean_code.py", import.meta.url))}
import importlib._bootstrap_external as external, importlib.util, io, zipfile

def compiled(data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data.to_bytes())) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            if name.endswith(".py"):
                code = lean(compile(text, name, "exec", dont_inherit=True))
                name, text = name + "c", external._code_to_hash_pyc(code, importlib.util.source_hash(text), False)
            target.writestr(name, text)
    return buffer.getvalue()

compiled
`;

const job = JSON.parse(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(join(job.pyodide, "pyodide.mjs")));
const env = { HOME: "/home/pyodide", PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" }; // no columns: a third of the code
const pyodide = await loadPyodide({ indexURL: `${job.pyodide}/`, env });
writeFileSync(job.output, pyodide.runPython(COMPILE)(new Uint8Array(readFileSync(job.input))).toJs());
