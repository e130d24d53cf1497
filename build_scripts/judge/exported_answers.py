"""Architectures of timm with random weights, or scikit-learn's estimators, through webinfer's exporters. Runs in the
judges' own environment.

Usage: python exported_answers.py timm|sklearn OUTPUT.jsonl ENGINE SECONDS MOST
One line a model: name, family, verdict, distance (of the largest value), onnxruntime's own distance, and what was said.
"""

import importlib
import json
import multiprocessing
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

warnings.filterwarnings("ignore")
SMALL = (
    "test_",
    "atto",
    "femto",
    "pico",
    "nano",
    "tiny",
    "xxs",
    "_xs",
    "small",
    "_035",
    "_050",
    "_s0",
    "_b0",
    "_b1",
    "10t",
)
LARGE = (
    "large",
    "huge",
    "giant",
    "gigantic",
    "enormous",
    "xxl",
    "xl",
    "_so400m",
    "_so150m",
    "_7b",
    "_1b",
    "_3b",
    "goliath",
)
MOST_PARAMETERS = 30_000_000  # larger ones are wider or deeper of the same, and take minutes each
SIDES = (64, 96, 128, 160, 224, 256)  # tried in turn: windows, patches and pools of some architectures need more


def main(kind: str, output: Path, deadline_s: float, most: int) -> None:
    """Writes the lines; models that an earlier run has written are left out."""
    done = {json.loads(line)["name"] for line in output.read_text().splitlines()} if output.exists() else set()
    names = timm_names() if kind == "timm" else sklearn_names()
    for library in ("onnx", "onnxruntime", "webinfer", "torch" if kind == "timm" else "skl2onnx"):
        importlib.import_module(library)  # once, for every child
    warm_up()
    work = {"timm": timm_row, "sklearn": sklearn_row}[kind]
    with output.open("a") as file:
        for name in [name for name in names[:most] if name not in done]:
            file.write(json.dumps(bounded(work, name, deadline_s)) + "\n")
            file.flush()


def bounded(work: Any, name: str, deadline_s: float) -> dict[str, Any]:
    """A row made in a process of its own, which is ended at the deadline."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(work, name, sender))
    started = time.monotonic()
    process.start()
    sender.close()
    try:
        row = receiver.recv() if receiver.poll(deadline_s) else {"verdict": "deadline", "said": f"{deadline_s:g} s"}
    except EOFError:
        row = {"verdict": "crash", "said": f"the process ended with {process.exitcode}"}
    process.kill()
    process.join()
    return {"name": name, **row, "seconds": round(time.monotonic() - started, 1)}


def warm_up() -> None:
    """Compiles the kernels once: children that are forked have them."""
    import onnx
    from onnx import TensorProto, helper

    import webinfer

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    assert onnx.checker.check_model(model) is None
    with webinfer.load_sync(model.SerializeToString(), backend="wasm", threads=1) as session:
        session.run({"x": np.zeros(2, np.float32)})


def _child(work: Any, name: str, sender: Any) -> None:
    np.random.seed(0)
    try:
        sender.send(work(name))
    except Exception as error:
        sender.send({"verdict": "failed", "said": f"{type(error).__name__}: {str(error)[:600]}"})


def farness(found: Any, wanted: Any) -> float:
    """The largest distance, as a part of the largest wanted value."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-30)) if wanted.size else 0.0


def judged(model: bytes, feed: dict[str, Any], wanted: list[Any]) -> dict[str, Any]:
    """Our answers and onnxruntime's beside the original's."""
    import onnxruntime

    import webinfer

    with webinfer.load_sync(bytes(model), backend="wasm", threads=1) as session:
        ours = [tensor.numpy() for tensor in session.run(feed).values()]
    theirs = onnxruntime.InferenceSession(bytes(model), providers=["CPUExecutionProvider"]).run(None, feed)
    distance = max(farness(one, other) for one, other in zip(ours, wanted, strict=True))
    native = max(farness(one, other) for one, other in zip(theirs, wanted, strict=True))
    verdict = "equal" if distance <= 1e-4 else "as onnxruntime" if distance <= 2 * native else "different"
    return {"verdict": verdict, "distance": distance, "onnxruntime": native, "said": ""}


# ----- timm


def timm_names() -> list[str]:
    """The architectures, the first of each family before the second ones, without those that are named as large."""
    import timm

    ranked, seen = [], dict[str, int]()
    for name in sorted(timm.list_models(), key=lambda name: not any(word in name for word in SMALL)):
        family = timm.models.model_entrypoint(name).__module__
        if not any(word in name for word in LARGE):
            seen[family] = seen.get(family, 0) + 1
            ranked.append((seen[family], name))
    return [name for _, name in sorted(ranked)]


def timm_row(name: str) -> dict[str, Any]:
    """One architecture: random weights, with none of the zeros and ones that hide a mistake."""
    import timm
    import torch

    import webinfer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, sample, refused = None, None, ""
    for side in SIDES:
        for options in ({"img_size": side}, {}):
            try:
                module = timm.create_model(name, **options).eval()
                channels = module.default_cfg["input_size"][0]
                sample = torch.randn(1, channels, side, side)
                with torch.no_grad():
                    module(sample)
                break
            except Exception as error:
                module, refused = None, str(error)
        if module is not None:
            break
    family = timm.models.model_entrypoint(name).__module__.rpartition(".")[2]
    if module is None or sample is None:
        return {"family": family, "verdict": "does not run", "said": refused[:300]}
    randomize(module, torch)
    with torch.no_grad():
        wanted = module(sample)
    wanted = [one.numpy() for one in (wanted if isinstance(wanted, tuple | list) else [wanted])]
    count = sum(p.numel() for p in module.parameters())
    if count > MOST_PARAMETERS:
        return {"family": family, "verdict": "too large", "said": f"{count:,} parameters"}
    told = {"family": family, "side": sample.shape[-1], "parameters": count}
    try:
        model = webinfer.from_torch(module, sample, inputs=["x"])
    except webinfer.UnsupportedOpError as error:
        return {**told, "verdict": "not exported", "said": str(error)[:600]}
    return {**told, **judged(model, {"x": sample.numpy()}, wanted)}


def randomize(module: Any, torch: Any) -> None:
    """Gives biases, scales and statistics values, which start as zeros, ones or 1e-6."""
    with torch.no_grad():
        for value in module.parameters():
            if value.is_floating_point() and value.numel() > 1 and float(value.std()) < 1e-4:
                value.add_(0.1 * torch.randn_like(value))
        for key, value in module.named_buffers():
            if key.endswith("running_mean"):
                value.normal_(0, 0.1)
            elif key.endswith("running_var"):
                value.uniform_(0.5, 1.5)


# ----- scikit-learn


def sklearn_names() -> list[str]:
    """Every estimator that skl2onnx has a converter for."""
    from skl2onnx import supported_converters
    from sklearn.utils import all_estimators

    has = {name.removeprefix("Sklearn") for name in supported_converters()}
    return [name for name, _ in all_estimators() if name in has]


def sklearn_row(name: str) -> dict[str, Any]:
    """One estimator, fitted on a table of random numbers with what it asks for."""
    from sklearn.utils import all_estimators

    import webinfer

    kind = dict(all_estimators())[name]
    random = np.random.default_rng(0)
    table = random.uniform(0.1, 1, (80, 5)).astype(np.float32)
    classes = (table[:, 0] + table[:, 1] > table[:, 2] + 0.5).astype(np.int64) + (table[:, 3] > 0.7)
    numbers = (table @ np.arange(1, 6) / 5).astype(np.float64)
    estimator = made(kind, name)
    failures = []
    for target in (classes, numbers, np.c_[numbers, numbers], np.c_[classes > 0, classes > 1].astype(int), None):
        rows = table[:, 0] if name == "IsotonicRegression" else table
        try:
            estimator.fit(rows, target) if target is not None else estimator.fit(rows)
            break
        except Exception as error:
            failures.append(str(error)[:200])
    else:
        return {"family": kind.__module__, "verdict": "not fitted", "said": failures[0]}
    told = {"family": kind.__module__.split(".")[1]}
    try:
        model = webinfer.from_sklearn(estimator, table)
    except webinfer.UnsupportedOpError as error:
        return {**told, "verdict": "not exported", "said": str(error)[:600]}
    return {**told, **compared(model, estimator, table)}


def made(kind: Any, name: str) -> Any:
    """The estimator, with what those that hold others need."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
    from sklearn.preprocessing import StandardScaler

    inner = LogisticRegression()
    needs = {
        "ColumnTransformer": lambda: kind([("scale", StandardScaler(), [0, 1])]),
        "FeatureUnion": lambda: kind([("scale", StandardScaler())]),
        "Pipeline": lambda: kind([("scale", StandardScaler()), ("line", inner)]),
        "StackingClassifier": lambda: kind([("a", inner)]), "VotingClassifier": lambda: kind([("a", inner)]),
        "StackingRegressor": lambda: kind([("a", Ridge())]), "VotingRegressor": lambda: kind([("a", Ridge())]),
        "RegressorChain": lambda: kind(Ridge()), "ClassifierChain": lambda: kind(inner),
        "MultiOutputRegressor": lambda: kind(Ridge()), "MultiOutputClassifier": lambda: kind(inner),
        "RANSACRegressor": lambda: kind(LinearRegression(), random_state=0),
        "GridSearchCV": lambda: kind(inner, {"C": [0.5, 1.0]}),
        "RandomizedSearchCV": lambda: kind(inner, {"C": [0.5, 1.0]}, n_iter=2),
        "SelectFromModel": lambda: kind(inner), "RFE": lambda: kind(inner), "RFECV": lambda: kind(inner),
    }  # fmt: skip
    if name in needs:
        return needs[name]()
    try:
        return kind()
    except TypeError:
        return kind(inner)


def compared(model: bytes, estimator: Any, table: Any) -> dict[str, Any]:
    """The estimator's own answers, in the order of the model's outputs."""
    if hasattr(estimator, "predict_proba") and not hasattr(estimator, "transform"):
        wanted = [estimator.predict(table), estimator.predict_proba(table)]
    elif hasattr(estimator, "predict"):
        wanted = [estimator.predict(table)]
    else:
        wanted = [estimator.transform(table)]
    import onnxruntime

    import webinfer

    native = onnxruntime.InferenceSession(bytes(model), providers=["CPUExecutionProvider"])
    key = native.get_inputs()[0].name
    theirs = native.run(None, {key: table})
    with webinfer.load_sync(bytes(model), backend="wasm", threads=1) as session:
        ours = [tensor.numpy() for tensor in session.run({key: table}).values()]
    shaped = [np.asarray(one.todense() if hasattr(one, "todense") else one) for one in wanted]
    pairs = list(zip(ours, theirs, strict=True))
    from_native = max(farness(one, other) for one, other in pairs)
    from_origin = max(
        (farness(one.reshape(other.shape) if one.size == other.size else one, other)
         for one, other in zip(ours, shaped, strict=False)), default=float("inf"),
    )  # fmt: skip
    verdict = "equal" if from_origin <= 1e-4 else "as onnxruntime" if from_native <= 1e-4 else "different"
    return {"verdict": verdict, "distance": from_origin, "onnxruntime": from_native, "said": ""}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[4]), int(sys.argv[5]))
