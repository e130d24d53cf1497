// Makes the memory snapshot: Pyodide with the engine imported, as the difference from a fresh instance.
//
//   node snapshot.mjs '{"pyodide": folder, "archives": [{"path", "file", "own"}], "first", "lock", "header",
//                      "scratch", "output"}'
//
// `archives` are zip files of modules, `path` is where the interpreter has them, `own` marks the engine's; the first is
// the standard library. `first` is the module that the saved interpreter runs before all others. The output: magic,
// version, bytes of the header, number of runs (32-bit words); for each run its address and length (two words); the
// header as JSON, padded to four bytes; the bytes of all runs. Outside of
// the runs memory is as the module's data segments leave it. web/static/startup/python_snapshot.js restores it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const MAGIC = 0x534e4957;
const VERSION = 1;
const BLOCK = 64; // bytes that are compared at a time
const GAP = 128; // equal bytes that do not end a run
const PAGE = 65536; // of WebAssembly memory
const ROOM = 12 * PAGE; // behind the heap's end, for the first things that Python does; more memory makes browsers collect garbage
const MARGIN = 1024; // bytes around what the start of an instance writes: there browsers may differ from Node

// Compiles the modules that are loaded, so that the one that is saved need not and holds no rubbish of it. What is not
// the engine's goes without docstrings, asserts and types of functions, and its tracebacks know of a function's lines only the first.
const COMPILE = `${readFileSync(new URL("lean_code.py", import.meta.url))}
import ast, importlib._bootstrap_external as external, importlib.util, io, sys, zipfile

TYPED = ("importlib/", "functools", "_pyodide/jsbind")  # where types of functions are read

def untyped(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree

def compiled(archive, own, first):
    buffer = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(buffer, "w") as target:
        names = set(source.namelist())
        wanted = {getattr(m.__spec__, "origin", None) for m in list(sys.modules.values()) if getattr(m, "__spec__", None)}
        for name in names:
            path, data = f"{archive}/{name}", source.read(name)
            if path in wanted and name.endswith(".py"):
                tree = ast.parse(data, path)
                tree = tree if own or name.startswith(TYPED) else untyped(tree)
                code = compile(tree, path, "exec", dont_inherit=True, optimize=0 if own else 2)
                code = code if own else lean(code)
                target.writestr(name + "c", external._code_to_hash_pyc(code, importlib.util.source_hash(data), False))
            elif not name.endswith(".py"):
                target.writestr(name, data)
        if first:
            target.writestr("sitecustomize.py", first)
    return buffer.getvalue()
`;
const ENVIRONMENT = { HOME: "/home/pyodide", PYTHONHASHSEED: "0" };
const IMPORT = "import webinfer.page.snapshot; webinfer.page.snapshot.preload()";

const job = JSON.parse(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(join(job.pyodide, "pyodide.mjs")));
const { default: create } = await import(pathToFileURL(join(job.pyodide, "pyodide.asm.mjs")));
const [stdlib, ...wheels] = job.archives.map((archive) => ({ ...archive, data: readFileSync(archive.file) }));

/** Pyodide started in Node; `fresh` gets the instance's exports before anything ran in it. */
function start({ fresh = () => {}, created = () => {}, ...options }) {
  return loadPyodide({
    indexURL: `${job.pyodide}/`,
    lockFileContents: job.lock,
    packageBaseUrl: job.pyodide,
    env: ENVIRONMENT,
    ...options,
    createPyodideModule: async (settings) => {
      const instantiateWasm = (imports, done) => settings.instantiateWasm(imports, (instance, module) => {
        fresh(instance.exports);
        done(instance, module);
      });
      const module = await create({ ...settings, instantiateWasm });
      created(module);
      return module;
    },
  });
}

/** An interpreter with these archives on its path. */
async function interpreter(stdLibURL, archives, options = {}) {
  const pyodide = await start({ stdLibURL, ...options });
  for (const { path, data } of archives) {
    pyodide.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    pyodide.FS.writeFile(path, data);
  }
  pyodide.runPython(`import sys; sys.path[:0] = ${JSON.stringify(archives.map(({ path }) => path))}`);
  return pyodide;
}

/** The memory of an instance whose own constructors have run, and no Python: what a snapshot is restored into. */
async function constructed() {
  let memory;
  const created = (module) => {
    module.API.restoreSnapshot = () => {
      memory = module.HEAPU8.slice();
      throw new Error("seen enough");
    };
  };
  await start({ stdLibURL: stdlib.file, _loadSnapshot: new Uint8Array(1), created }).catch(() => {});
  return memory;
}

/** Overwrites what the interpreter has freed, which would only be ballast. */
function scrub({ malloc, free, malloc_usable_size, malloc_footprint, malloc_set_footprint_limit, memory }) {
  const taken = [];
  malloc_set_footprint_limit(malloc_footprint());
  for (let size = 1 << 22; size >= 16; size = Math.min(size - 8, Math.floor(size * 0.95)) & ~7) {
    for (let block = malloc(size) >>> 0; block; block = malloc(size) >>> 0) {
      new Uint8Array(memory.buffer, block, malloc_usable_size(block)).fill(0);
      taken.push(block);
    }
  }
  malloc_set_footprint_limit(0xffffffff);
  for (const block of taken) free(block);
}

/** For each block whether the two memories differ there; what one of them lacks counts as zero. */
function differences(memory, other) {
  const blocks = new Uint8Array(Math.ceil(memory.length / BLOCK));
  for (let i = 0; i < memory.length; i += 1) if (memory[i] !== (other[i] ?? 0)) blocks[Math.floor(i / BLOCK)] = 1;
  return blocks;
}

/** [address, length] of all that must be written into a constructed instance to make it equal to `memory`. */
function runsOf(memory, fresh, started) {
  const wanted = differences(memory, fresh);
  const around = MARGIN / BLOCK;
  differences(started, fresh).forEach((differs, i) => differs && wanted.fill(1, Math.max(0, i - around), i + around));
  const runs = [];
  wanted.forEach((write, i) => {
    if (!write) return;
    const last = runs.at(-1);
    const [begin, end] = [i * BLOCK, Math.min((i + 1) * BLOCK, memory.length)];
    if (last && begin - (last[0] + last[1]) <= GAP) last[1] = end - last[0];
    else runs.push([begin, end - begin]);
  });
  return runs;
}

/** Memory and held objects out of Pyodide's own snapshot: magic, offset, bytes of JSON, 0, 32 bytes of build, JSON. */
function unpacked(snapshot) {
  const [, offset, length] = new Uint32Array(snapshot.buffer, snapshot.byteOffset, 3);
  return { memory: snapshot.subarray(offset), hiwire: JSON.parse(new TextDecoder().decode(snapshot.subarray(48, 48 + length))) };
}

function written(memory, runs, header) {
  const json = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([json, Buffer.alloc(-json.length & 3, " ")]);
  const words = new Uint32Array([MAGIC, VERSION, padded.length, runs.length, ...runs.flat()]);
  const parts = runs.map(([begin, length]) => memory.subarray(begin, begin + length));
  return Buffer.concat([Buffer.from(words.buffer), padded, ...parts]);
}

const draft = await interpreter(stdlib.file, wheels, { env: { ...ENVIRONMENT, PYTHONNODEBUGRANGES: "1" } });
draft.runPython(`${IMPORT}\n${COMPILE}`);
const compiled = ({ path, own }) => {
  const archive = draft.globals.get("compiled")(path, own, path === stdlib.path ? readFileSync(job.first, "utf8") : "");
  return { path, data: archive.getBuffer().data.slice() };
};
writeFileSync(job.scratch, compiled(stdlib).data);

let fresh, exports;
const keep = (all) => {
  exports = all;
  fresh = new Uint8Array(all.memory.buffer).slice();
};
const options = { _makeSnapshot: true, fresh: keep };
const final = await interpreter(job.scratch, wheels.map(compiled), options);
final.runPython(IMPORT);
const facts = JSON.parse(final.runPython("webinfer.page.snapshot.facts()"));
for (const { path, data } of [stdlib, ...wheels]) final.FS.writeFile(path, data); // as they will be found later on
final.runPython("import sitecustomize, sys; sys.meta_path.remove(sitecustomize.DeferredFinder)");
final.runPython("import gc, importlib; importlib.invalidate_caches(); gc.collect(); gc.freeze()");
scrub(exports);
const { memory: whole, hiwire } = unpacked(final.makeMemorySnapshot());
const memory = whole.subarray(0, Math.ceil((exports.sbrk(0) + ROOM) / PAGE) * PAGE);
const runs = runsOf(memory, fresh, await constructed());
const { BUILD_ID: build } = final._api.config;
const file = written(memory, runs, { ...job.header, ...facts, build, hiwire, memory: memory.length });
writeFileSync(job.output, file);
console.log(`${(memory.length / 1e6).toFixed(1)} MB of memory, ${runs.length} runs, ${(file.length / 1e6).toFixed(1)} MB`);
process.exit(0);
