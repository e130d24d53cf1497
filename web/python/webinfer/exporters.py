"""Models of other libraries as ONNX, by the exporters of those libraries: from an object of a notebook to a session.

session = webinfer.from_torch(module, sample).session()
package = await webinfer.package.compile_model(webinfer.from_sklearn(estimator, table))
"""

from __future__ import annotations

import importlib.util
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webinfer.errors import InputError, UnsupportedOpError
from webinfer.host.whole_files import write_whole

if TYPE_CHECKING:
    from webinfer.session.waiting import SyncSession


NEWEST_FOR_OLD_ML = 18  # of ONNX itself; skl2onnx 1.20 takes it beside version 3 of ai.onnx.ml


class OnnxModel(bytes):
    """The bytes of an ONNX model: `load`, `load_sync` and `compile_model` take it as it is."""

    def session(self, **options: Any) -> SyncSession:
        """A session whose methods wait. `options` are those of `webinfer.load`, which async code calls itself."""
        from webinfer.session.waiting import load_sync

        return load_sync(bytes(self), **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as an .onnx file."""
        write_whole(Path(path), bytes(self))


def from_torch(
    module: Any,
    sample: Any,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    open_sizes: Mapping[str, Mapping[int, str]] | None = None,
    opset: int = 18,
) -> OnnxModel:
    """Converts a PyTorch module, exported in evaluation mode as it runs on `sample`, a tensor or a tuple of tensors.

    `inputs` and `outputs` are their names. `open_sizes` are dynamic sizes by input or output: {"input": {0: "batch"}}.

    Raises:  InputError if PyTorch is not installed, or the module does not run on the sample; UnsupportedOpError if
             PyTorch's exporters refuse it
    """
    torch = _needed("torch", "from_torch")
    given, training = (sample if isinstance(sample, tuple) else (sample,)), getattr(module, "training", False)
    options: dict[str, Any] = {"input_names": inputs, "output_names": outputs, "dynamic_axes": open_sizes}
    refused: list[str] = []
    try:
        module.eval()
        with torch.no_grad(), _plain_attention(torch):
            _try_out(module, given)
            for dynamo in (False, True):  # the older exporter needs nothing else
                if dynamo and importlib.util.find_spec("onnxscript") is None:
                    refused.append("PyTorch's newer exporter needs onnxscript: pip install onnxscript")
                    break
                file = io.BytesIO()
                try:
                    torch.onnx.export(module, given, file, opset_version=opset, dynamo=dynamo, **options)
                    return OnnxModel(file.getvalue())
                except Exception as error:
                    refused.append(f"PyTorch cannot export {type(module).__name__}: {error}")
    finally:
        module.train(training)
    raise UnsupportedOpError(refused)


def _try_out(module: Any, given: tuple[Any, ...]) -> None:
    """Raises InputError if the module does not run on the sample, which the exporters would tell at length."""
    try:
        module(*given)
    except Exception as error:
        raise InputError(f"{type(module).__name__} does not run on the sample: {error}") from error


@contextmanager
def _plain_attention(torch: Any) -> Iterator[None]:
    """Switches off the fused encoder layer, which PyTorch takes in evaluation and which ONNX does not have."""
    mha = getattr(getattr(torch, "backends", None), "mha", None)
    before = mha.get_fastpath_enabled() if mha is not None else False
    if mha is not None:
        mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        if mha is not None:
            mha.set_fastpath_enabled(before)


def from_sklearn(estimator: Any, sample: Any, *, opset: int | None = None) -> OnnxModel:
    """Converts a fitted scikit-learn estimator or pipeline; `sample` is a few rows of its table, for types and columns.

    float64 columns become float32. Probabilities are a tensor [rows, classes]; labels must be numbers.

    Raises:  InputError if skl2onnx is not installed; UnsupportedOpError if it has no converter for the estimator
    """
    to_onnx = _needed("skl2onnx", "from_sklearn").to_onnx
    if str(getattr(sample, "dtype", "")) == "float64":
        sample = sample.astype("float32")
    try:
        made = _converted(to_onnx, estimator, sample[:1], opset)
    except ImportError as error:
        raise _missing(error, "from_sklearn") from error
    except Exception as error:
        raise UnsupportedOpError([f"skl2onnx cannot convert {type(estimator).__name__}: {error}"]) from error
    return OnnxModel(made.SerializeToString())


def _converted(to_onnx: Any, estimator: Any, sample: Any, opset: int | None) -> Any:
    """What skl2onnx makes, without what some of its converters refuse.

    What knows classes and gives no probabilities, as LinearSVC and RFE, has no option for them (NameError); forests of
    isolation need an older version of the operators of machine learning (RuntimeError).
    """
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "classes_") else None
    target: Any = opset
    for _ in range(2):
        try:
            return to_onnx(estimator, sample, options=options, target_opset=target)
        except NameError:
            options = None
        except RuntimeError as error:
            if "domain 'ai.onnx.ml' not supported" not in str(error):
                raise
            target = {"": opset or NEWEST_FOR_OLD_ML, "ai.onnx.ml": 3}
    return to_onnx(estimator, sample, options=options, target_opset=target)


def from_keras(model: Any) -> OnnxModel:
    """Converts a Keras 3 model with Keras' own ONNX exporter.

    Raises:  InputError if Keras or what its exporter needs is not installed; UnsupportedOpError if it refuses the model
    """
    _needed("keras", "from_keras")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        try:
            model.export(str(file), format="onnx", verbose=False)
        except ImportError as error:
            raise _missing(error, "from_keras") from error
        except Exception as error:
            raise UnsupportedOpError([f"Keras cannot export {type(model).__name__}: {error}"]) from error
        return OnnxModel(file.read_bytes())


def _needed(name: str, caller: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _missing(error, caller) from error


def _missing(error: ImportError, caller: str) -> InputError:
    """The error that says what to install."""
    name = (error.name or str(error)).partition(".")[0]
    return InputError(f"{caller} needs {name}, which is not installed: pip install {name}")
