"""The command line: `webinfer inspect | run | bench | verify | tune | compile | chat | dump | devices | lab | export |
batch | cache`, and the verbs of tasks (task_verbs)."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from webinfer.backends import registry
from webinfer.backends.base import TunableBackend
from webinfer.backends.registry import AUTO
from webinfer.cache_verbs import add_cache_verb
from webinfer.dtypes import DType
from webinfer.errors import InputError, WebinferError
from webinfer.host.progress_bar import shown
from webinfer.host.whole_files import write_whole
from webinfer.packing import to_inner
from webinfer.scale.command import add_batch_verb
from webinfer.session.loading import load
from webinfer.session.options import MAX_ROUNDS, real_number, whole_number
from webinfer.session.session import Session
from webinfer.task_verbs import add_task_verbs, option_of
from webinfer.tensor import Tensor
from webinfer.version import VERSION

STOPPED = 130  # exit status of a program that Ctrl-C ended


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb; the exit status is 0, 1 for a check that failed, 2 for what cannot be done, 130 after Ctrl-C.

    That is a typed error, a command line that is wrong, or a file that cannot be written.
    """
    args = _parser().parse_args(argv)
    try:
        status: int = asyncio.run(args.verb(args))
    except (WebinferError, OSError) as error:
        print(f"webinfer: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return STOPPED
    return status


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a command line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"webinfer: {message}; {self.prog} --help tells what is allowed\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="webinfer", description="machine-learning inference in the browser, from Python")
    parser.add_argument("--version", action="version", version=f"webinfer {VERSION}")
    listed = [row.name for row in registry.listed()]
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, verb, text in (
        ("inspect", _inspect, "print a model's inputs, outputs, graph and plan"),
        ("run", _run, "run a model on .npy files or pictures, or on seeded random input"),
        ("bench", _bench, "time a model and each of its steps"),
        ("verify", _verify, "compare every intermediate result with another backend"),
        ("tune", _tune, "time kernels on this machine's GPU and remember the fastest"),
    ):
        sub = verbs.add_parser(name, help=text, description=text)
        sub.add_argument("model", help="a model file, a URL, or the name of a known model")
        default = "" if name == "tune" else listed[0]  # which backends are tuned, only they know themselves
        sub.add_argument(
            "--backend",
            default=default,
            help=f"{AUTO}, {', '.join(listed)}, or several with commas (default: {default or 'one that is tuned'})",
        )
        half = " and ".join(registry.taking("float16"))
        sub.add_argument("--precision", default="float32", help=f"float16: half the memory on {half}")
        sub.add_argument("--strict", action="store_true", help="never fall back to another backend")
        sub.add_argument(
            "--shape", action="append", metavar="INPUT=1x16", help="sizes for a dynamic input; may be repeated"
        )
        sub.add_argument("--member", help="the model to take from a bundle (.task, .zip) that contains several")
        sub.set_defaults(verb=verb)
        _add_own_options(sub, name)
    add_task_verbs(verbs)
    add_batch_verb(verbs)
    add_cache_verb(verbs)
    _add_chat(verbs)
    _add_compilers(verbs)
    _add_servers(verbs)
    return parser


def _add_own_options(sub: argparse.ArgumentParser, name: str) -> None:
    """The options of one verb on a model."""
    if name == "inspect":
        sub.add_argument("--graph", action="store_true", help="print the optimized graph")
        sub.add_argument("--json", action="store_true", help="print the plan as JSON")
    if name == "run":
        sub.add_argument(
            "inputs",
            nargs="*",
            metavar="NAME=FILE",
            help=".npy files or pictures; FILE alone if there is only one input",
        )
        sub.add_argument("--values", default="0,1", help="values for black and white (default: %(default)s)")
        sub.add_argument("--output", type=Path, help="folder for the outputs as .npy files")
    if name == "bench":
        sub.add_argument("--rounds", type=int, default=20, help="timed runs (default: %(default)s)")
        sub.add_argument("--svg", type=Path, help="write the profile as a picture")
    if name == "verify":
        sub.add_argument("--against", default=registry.definition(), help="the other backend (default: %(default)s)")
        sub.add_argument("--tolerance", type=float, default=1e-3, help="of each tensor's range (default: %(default)s)")
    if name == "tune":
        sub.add_argument("--budget-ms", type=float, default=10_000, help="time to spend (default: %(default)s)")
        sub.add_argument("--import", dest="known", type=Path, help="a log of earlier tuning to begin with")
        sub.add_argument("--log", type=Path, help="write what is known of this GPU as JSON lines")


def _add_chat(verbs: Any) -> None:
    text = "chat with a language model (.gguf) in this terminal"
    sub = verbs.add_parser("chat", help=text, description=text)
    sub.add_argument("model", help="a GGUF file, a URL, or the name of a known model")
    sub.add_argument("--backend", default=AUTO, help=f"{AUTO}, or the name of a backend")
    sub.add_argument(
        "--context", type=int, help="maximum number of tokens of a conversation (default: 2048, or the model's)"
    )
    sub.add_argument(
        "--temperature", type=float, default=0.0, help="0 takes the most likely token (default: %(default)s)"
    )
    sub.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        help="sample from the smallest set of tokens with this probability (default: %(default)s)",
    )
    sub.add_argument("--seed", type=int, help="seed of the sampling, for repeatable answers")
    sub.add_argument("--system", help="the system message")
    sub.set_defaults(verb=_chat)


def _add_compilers(verbs: Any) -> None:
    text = "write what a model is compiled to, on every backend: graph, plan, steps, shaders, dispatches"
    sub = verbs.add_parser("dump", help=text, description=text)
    sub.add_argument("model", help="a model file, a URL, or the name of a known model")
    sub.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder for the files")
    sub.set_defaults(verb=_dump)
    text = "write a page for any static host that runs a compiled package"
    sub = verbs.add_parser("export", help=text, description=text)
    sub.add_argument("folder", type=Path, help="a new or empty folder, or an earlier export, which is replaced")
    sub.add_argument(
        "--package", type=Path, required=True, metavar="NAME.webinfer", help="the package that `compile` wrote"
    )
    sub.set_defaults(verb=_export)
    text = "compile a model into one file that runs without Python"
    sub = verbs.add_parser("compile", help=text, description=text)
    sub.add_argument("model", help="a model file, a URL, or the name of a known model")
    sub.add_argument("-o", dest="output", type=Path, required=True, metavar="NAME.webinfer", help="or NAME.wasm")
    sub.add_argument("--backend", default="wasm,webgpu", help="the backends of the package (default: %(default)s)")
    sub.add_argument("--task", help="include a task, such as face-detector; an unknown name lists them")
    text = "an option of the task; VALUE is JSON, text, or @FILE for the lines of a file; may be repeated"
    sub.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help=text)
    sub.add_argument("--build", help="builds of the kernels: relaxed, simd128, scalar, or several separated by commas")
    sub.add_argument("--tunings", type=Path, metavar="LOG", help="add a plan for each adapter in this tuning log")
    sub.add_argument("--library", action="store_true", help="write a .wasm that imports nothing and is not a command")
    sub.add_argument("--precision", default="float32", help="float16: half the memory on webgpu")
    sub.add_argument(
        "--shape", action="append", metavar="INPUT=1x16", help="sizes for a dynamic input; may be repeated"
    )
    text = "sizes that a package with dynamic sizes is to run at; may be repeated"
    sub.add_argument("--sizes", action="append", metavar="INPUT=1x16,INPUT=1x16", help=text)
    sub.add_argument(
        "--value", action="append", metavar="INPUT=1", help="fixes an input to values, such as INPUT=1,2,3"
    )
    sub.add_argument("--member", help="the model to take from a bundle (.task, .zip) that contains several")
    sub.set_defaults(verb=_compile)


def _add_servers(verbs: Any) -> None:
    text = "list the devices of a lab, or export their tunings"
    sub = verbs.add_parser("devices", help=text, description=text)
    sub.add_argument(
        "--lab", metavar="ADDRESS", help="the address that the lab's server printed (default: WEBINFER_LAB)"
    )
    sub.add_argument("--results", action="store_true", help="print their answers instead, as JSON lines")
    sub.add_argument("--tunings", type=Path, metavar="FILE", help="write a tuning log, for tune --import")
    sub.set_defaults(verb=_devices)
    _add_lab_verbs(verbs)
    text = "serve a site that `export` wrote, on this machine"
    sub = verbs.add_parser("serve", help=text, description=text)
    sub.add_argument(
        "--site", type=Path, metavar="FOLDER", help="the folder that `export` wrote, here or in a checkout"
    )
    sub.add_argument("--port", type=int, default=8000, help="0: a free one (default: %(default)s)")
    sub.add_argument("--lab", action="store_true", help="serve the page on which browsers become devices instead")
    sub.add_argument("--host", default="127.0.0.1", help="lab only: an address of this machine in its network")
    sub.add_argument("--database", help="lab only: SQLAlchemy URL of the database for results (default: a file here)")
    sub.add_argument("--workers", type=int, default=1, help="of a lab: processes that serve it (default: %(default)s)")
    sub.add_argument("--certificate", type=Path, help="lab only: PEM file of a certificate, to serve over HTTPS")
    sub.add_argument("--key", type=Path, help="lab only: PEM file of the certificate's key")
    sub.add_argument(
        "--pyodide", type=Path, metavar="FOLDER", help="lab only: folder with the unpacked npm package pyodide"
    )
    sub.set_defaults(verb=_serve)


def _add_lab_verbs(verbs: Any) -> None:
    text = "run a suite of models on the devices of a lab, or make a page of the results"
    verbs = verbs.add_parser("lab", help=text, description=text).add_subparsers(required=True, metavar="VERB")
    text = "run a suite, or a shard of it, on the devices of a lab, and write the results to one file"
    sub = verbs.add_parser("run", help=text, description=text)
    sub.add_argument(
        "--suite", default="zoo", help="zoo: all known models; or a folder of models (default: %(default)s)"
    )
    sub.add_argument("--shard", default="1/1", metavar="3/8", help="the third of eight parts (default: %(default)s)")
    sub.add_argument(
        "--lab", metavar="ADDRESS", help="the address that the lab's server printed (default: WEBINFER_LAB)"
    )
    sub.add_argument("--device", action="append", help="one of those used (default: all that are free); repeatable")
    sub.add_argument("--backend", default="wasm", help="one, or several with commas (default: %(default)s)")
    sub.add_argument("--rounds", type=int, default=20, help="timed runs of a model (default: %(default)s)")
    source = sub.add_mutually_exclusive_group()
    source.add_argument("--grid", metavar="URL", help="a Selenium Grid whose browsers become the devices")
    source.add_argument("--playwright", metavar="URL", help="a Playwright server, or a Chromium's port for drivers")
    sub.add_argument("--browser", default="chrome", help="of a grid or a server: chrome or firefox (default: chrome)")
    sub.add_argument("--browsers", type=int, default=1, help="how many of them (default: %(default)s)")
    sub.add_argument("-o", dest="output", type=Path, default=Path("runs"), help="the folder (default: %(default)s)")
    sub.set_defaults(verb=_lab_run)
    text = "make a static page of the runs in a folder"
    sub = verbs.add_parser("page", help=text, description=text)
    sub.add_argument("runs", type=Path, nargs="?", default=Path("runs"), help="the folder (default: %(default)s)")
    sub.set_defaults(verb=_lab_page)


async def _compile(args: argparse.Namespace) -> int:
    from webinfer.package import compile_model, compile_wasm  # which other verbs may do without

    suffix, builds = args.output.suffix, {} if args.build is None else {"builds": args.build.split(",")}
    options = {"task": args.task, "shapes": _shapes(args), "member": args.member}
    options["values"] = dict(map(_value, args.value)) if args.value else None
    options["task_options"] = dict(map(_task_option, args.set))
    if suffix == ".webinfer":
        tunings = "" if args.tunings is None else _text(args.tunings)
        sizes = [dict(map(_shape, sample.split(","))) for sample in args.sizes or ()]
        options |= {"precision": args.precision, "tunings": tunings, "sizes": sizes, **builds}
        data = await compile_model(args.model, backend=args.backend.split(","), **options)
    elif suffix == ".wasm":
        build = args.build or "simd128"
        data = await compile_wasm(args.model, build=build, command=not args.library, **options)
    else:
        raise InputError(f"-o {str(args.output)!r}: a compiled model is called NAME.webinfer or NAME.wasm")
    write_whole(args.output, data)
    print(f"{args.output}: {len(data):,} bytes")
    return 0


def _task_option(text: str) -> tuple[str, Any]:
    name, value = option_of(text)
    lines = isinstance(value, str) and value.startswith("@")
    return name, _text(Path(value[1:])).splitlines() if lines else value


async def _load(args: argparse.Namespace) -> Session:
    chosen = args.backend or registry.able(TunableBackend)[0]
    backend = chosen.split(",") if "," in chosen else chosen
    options = {"precision": args.precision, "shapes": _shapes(args), "member": args.member}
    return await load(args.model, backend=backend, strict=args.strict, **options)


def _shapes(args: argparse.Namespace) -> dict[str, tuple[int, ...]] | None:
    return dict(map(_shape, args.shape)) if args.shape else None


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition("=")
    if not name or not all(size.isascii() and size.isdigit() for size in sizes.split("x")):
        raise InputError(f"--shape {text!r} is not an input and its sizes; write INPUT=1x16")
    return name, tuple(map(int, sizes.split("x")))


def _value(text: str) -> tuple[str, list[float]]:
    name, _, numbers = text.rpartition("=")
    try:
        return name, [int(n) if n.lstrip("-").isdecimal() else float(n) for n in numbers.split(",")]
    except ValueError:
        raise InputError(f"--value {text!r} is not an input and its numbers; write INPUT=1 or INPUT=1,2") from None


async def _inspect(args: argparse.Namespace) -> int:
    with await _load(args) as session:
        if args.json:
            _need_sizes(session)
            print(session.plan().json())
            return 0
        for kind, infos in (("input", session.inputs), ("output", session.outputs)):
            for info in infos:
                scale = (
                    f", scale {info.quantization.scales[0]:.6g}, zero {info.quantization.zero_points[0]}"
                    if info.quantization
                    else ""
                )
                print(f"{kind} {info.name}: {info.dtype} {list(info.shape)}{scale}")
        unbound = _unbound(session)
        if unbound and not args.graph:
            print(f"no plan: {unbound}")
            return 0
        _need_sizes(session)
        if args.graph:
            print(session.graph_text())
        print(session.plan())
    return 0


def _unbound(session: Session) -> str:
    """Which inputs leave sizes open, and the option that binds the first of them; empty if none does."""
    found = [info for info in session.inputs if not all(isinstance(size, int) for size in info.shape)]
    if not found:
        return ""
    sizes = "x".join(str(size) if isinstance(size, int) else "1" for size in found[0].shape)
    named = ", ".join(f"{info.name!r} ({', '.join(map(str, info.shape))})" for info in found)
    return f"sizes are open: {named}; give them, such as --shape {found[0].name}={sizes}"


def _need_sizes(session: Session) -> None:
    if unbound := _unbound(session):
        raise InputError(f"{session.name!r}: {unbound}")


async def _run(args: argparse.Namespace) -> int:
    with await _load(args) as session:
        outputs = await session.run(_read_inputs(session, args.inputs, args.values))
        for name, tensor in outputs.items():
            values = tensor.tolist()
            head = ", ".join(f"{v:.6g}" for v in values[:8])
            span = f"min {min(values):.6g} max {max(values):.6g} [{head}, ...]" if values else "no elements"
            print(f"{name}: {tensor.dtype} {list(tensor.shape)} {span}")
            if args.output is not None:
                _save(args.output, name, tensor)
    return 0


def _picture(session: Session, name: str, file: str, values: str) -> Tensor:
    """A picture file as an input; `values` are the numbers that black and white become, "0,1"."""
    from webinfer.pipelines.model_input import picture_input  # which other verbs may do without

    info = next((info for info in session.inputs if info.name == name), None)
    if info is None:
        raise InputError(f"{session.name!r} has no input {name!r}; it has {', '.join(i.name for i in session.inputs)}")
    try:
        low, high = map(float, values.split(","))
    except ValueError:
        raise InputError(f"--values {values!r} is not two numbers; write --values=-1,1") from None
    return picture_input(file, info, low, high)


def _read_inputs(session: Session, given: Sequence[str], values: str) -> Any:
    if not given:
        _need_sizes(session)
        return session.noise()
    arrays = {}
    for item in given:
        name, equals, file = item.rpartition("=")
        if not equals and len(session.inputs) == 1:
            name = session.inputs[0].name
        if not name or not file:
            raise InputError(f"{item!r} is not NAME=FILE.npy or NAME=PICTURE")
        if not file.endswith(".npy"):
            arrays[name] = _picture(session, name, file, values)
            continue
        try:
            arrays[name] = _numpy(f"{item!r}").load(file, allow_pickle=False)
        except OSError as error:
            raise InputError(f"cannot read {file!r}: {error.strerror or error}") from error
        except ValueError as error:  # NumPy would advise to allow pickles, which run any code
            raise InputError(
                f"cannot read {file!r}: it is not an array of numbers in a .npy file; write it with numpy.save"
            ) from error
    return arrays


def _numpy(what: str) -> Any:
    try:
        import numpy
    except ImportError as error:
        raise InputError(f"{what} is for .npy files, which need NumPy: pip install numpy") from error
    return numpy


def _save(folder: Path, name: str, tensor: Tensor) -> None:
    """Writes a .npy file: magic, version, the length and the text of a head, the elements.

    Types that NumPy lacks are written in the type that they are computed in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
    dtype, data = tensor.dtype, tensor.tobytes()
    if dtype is not DType.FLOAT64 and dtype.inner is not dtype:
        dtype, data = dtype.inner, bytes(to_inner(memoryview(data), dtype))
    descr = f"<{dtype.value[0]}{dtype.itemsize}"  # <f4, <i8, <u1, <b1
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(tensor.shape)!r}, }}"
    padded = head.ljust(-(-(len(head) + 11) // 64) * 64 - 11) + "\n"  # elements begin at a multiple of 64 bytes
    prefix = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little")
    write_whole(folder / f"{stem}.npy", prefix + padded.encode() + data)


async def _bench(args: argparse.Namespace) -> int:
    whole_number("--rounds", args.rounds, 1, MAX_ROUNDS)
    with await _load(args) as session:
        _need_sizes(session)
        inputs = session.noise()
        await session.run(inputs)
        times = []
        for _ in range(args.rounds):
            start = session.host.now_ms()
            await session.run(inputs)
            times.append(session.host.now_ms() - start)
        figures = f"median {statistics.median(times):.3f} ms, min {min(times):.3f} ms of {len(times)} runs"
        print(f"{session.name} on {session.backend}: {figures}")
        profile = await session.profile(inputs)
        print(profile)
        if args.svg is not None:
            write_whole(args.svg, profile.svg().encode())
    return 0


async def _verify(args: argparse.Namespace) -> int:
    real_number("--tolerance", args.tolerance)
    with await _load(args) as session:
        _need_sizes(session)
        report = await session.verify(args.against, tolerance=args.tolerance)
        told = {"ok": report.ok, "notes": report.notes} if report.notes else {"ok": report.ok}
        print(json.dumps(told) if report.ok else report)
        return 0 if report.ok else 1


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(file)!r}: {error}") from error


async def _tune(args: argparse.Namespace) -> int:
    real_number("--budget-ms", args.budget_ms, unit=" of milliseconds")
    with await _load(args) as session:
        _need_sizes(session)
        if args.known is not None:
            taken, skipped = await session.import_tuning(_text(args.known))
            print(f"{taken} lines of {args.known} imported, {skipped} are for other devices")
        with shown(None, "") as progress:
            print(await session.tune(args.budget_ms, progress))
        if args.log is not None:
            write_whole(args.log, (await session.export_tuning()).encode())
    return 0


async def _export(args: argparse.Namespace) -> int:
    from webinfer.package.web_page import export_page

    files = export_page(args.package, args.folder)
    print(f"{args.folder}: {len(files)} files, {sum(files.values()):,} bytes; ready for any static host")
    print(f"to view it here: webinfer serve --site {args.folder}")
    return 0


async def _devices(args: argparse.Namespace) -> int:
    from webinfer.lab.command import show  # which other verbs may do without

    await show(args.lab, args.results, args.tunings)
    return 0


async def _lab_run(args: argparse.Namespace) -> int:
    from webinfer.lab.command import run_fleet  # which other verbs may do without

    return await run_fleet(args)


async def _lab_page(args: argparse.Namespace) -> int:
    from webinfer.lab.fleet import page_of, read_runs  # which other verbs may do without

    if not args.runs.is_dir():
        raise InputError(f"there is no folder '{args.runs}' with runs; `webinfer lab run -o {args.runs}` makes one")
    file, runs = args.runs / "index.html", read_runs(args.runs)
    write_whole(file, page_of(runs).encode())
    print(f"{file}: {len(runs)} runs")
    return 0


async def _serve(args: argparse.Namespace) -> int:
    told = partial(print, flush=True)
    if args.lab:
        from webinfer.lab.site import serve_lab  # which other verbs may do without

        names = ("host", "port", "database", "workers", "pyodide", "certificate", "key")
        options = {name: getattr(args, name) for name in names}
        with shown(None, "") as progress, contextlib.suppress(asyncio.CancelledError):  # Ctrl-C
            await serve_lab(told, **options, progress=progress)
        return 0
    if args.site is not None:
        from webinfer.package.serving import serve_folder  # which other verbs may do without

        serving = serve_folder(args.site, args.port, told)
    else:
        from webinfer.lab.errors import NoSiteError  # which other verbs may do without

        raise NoSiteError(
            "webinfer serve: what is installed here holds no demo; a checkout of the project has it, by python3 -m "
            "build_scripts serve. --site FOLDER serves what `webinfer export` wrote, --lab the page on which browsers "
            "become devices"
        )
    with contextlib.suppress(asyncio.CancelledError):  # Ctrl-C
        await serving
    return 0


async def _dump(args: argparse.Namespace) -> int:
    from webinfer.dump import dump  # reads the kernel table, which other verbs may do without

    await dump(args.model, args.to)
    return 0


async def _chat(args: argparse.Namespace) -> int:
    from webinfer.language.generator import TextGenerator
    from webinfer.language.recent import RecentMessages

    messages = [{"role": "system", "content": args.system}] if args.system else []
    options = {"temperature": args.temperature, "top_p": args.top_p, "seed": args.seed}
    opening = TextGenerator.create(args.model, backend=args.backend, context=args.context, overflow="slide")
    async with await opening as generator:
        recent = RecentMessages(generator)
        while (line := await asyncio.to_thread(_line)) is not None:
            messages.append({"role": "user", "content": line})
            answer, begin = "", generator.model.host.now_ms()
            with _interrupts() as pressed:
                async for piece in generator.stream(recent.of(messages), **options):
                    print(piece, end="", flush=True)
                    answer += piece
                    if pressed:
                        break
            messages.append({"role": "assistant", "content": answer})
            seconds = (generator.model.host.now_ms() - begin) / 1000
            forgotten = f"; the oldest {recent.left_out} messages are not read any more" * bool(recent.left_out)
            tokens = generator.generated
            told = f"{tokens} tokens, {tokens / max(seconds, 1e-3):.1f} tokens/s, {generator.backend}"
            print(f"\n[{told}{'; stopped' * bool(pressed)}{forgotten}]")
    return 0


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Ctrl-C ends an answer, not the program: the list has what was pressed meanwhile."""
    pressed: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    except ValueError:  # signals come to the main thread alone
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _line() -> str | None:
    """What is typed next; None at the end of input."""
    try:
        return input("> " if sys.stdin.isatty() else "")
    except (EOFError, KeyboardInterrupt):
        return None


if __name__ == "__main__":
    sys.exit(main())
