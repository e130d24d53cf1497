"""Models of scikit-learn, PyTorch and Keras become sessions with the same answers; what is missing is named."""

from __future__ import annotations

import contextlib
import sys
import types

import numpy as np
import pytest

import webinfer
from webinfer.errors import InputError, UnsupportedOpError
from webinfer.exporters import OnnxModel

CASES = ("from_torch", "torch"), ("from_sklearn", "skl2onnx"), ("from_keras", "keras")


@pytest.mark.parametrize(("function", "library"), CASES)
def test_a_missing_library_is_named(function, library, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"{function} needs {library}, which is not installed: pip install {library}"):
        getattr(webinfer, function)(*([None] if function == "from_keras" else [None, None]))


def _keras(export):
    return types.SimpleNamespace(export=export)


def test_what_an_exporter_needs_and_refuses_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", types.ModuleType("keras"))

    def needs(path, format, verbose):
        raise ModuleNotFoundError("No module named 'tf2onnx.convert'", name="tf2onnx.convert")

    def refuses(path, format, verbose):
        raise ValueError("no such layer")

    with pytest.raises(InputError, match=r"pip install tf2onnx$"):
        webinfer.from_keras(_keras(needs))
    with pytest.raises(UnsupportedOpError, match="no such layer"):
        webinfer.from_keras(_keras(refuses))


def test_an_exported_model_is_a_session_and_a_file(tmp_path, monkeypatch) -> None:
    pytest.importorskip("onnx")
    from tests.compat.onnx_files import product

    monkeypatch.setitem(sys.modules, "keras", types.ModuleType("keras"))

    def export(path, format, verbose):
        with open(path, "wb") as file:
            file.write(product())

    model = webinfer.from_keras(_keras(export))
    assert isinstance(model, OnnxModel)
    model.save(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == product()
    with model.session(backend="wasm") as session:
        found = session.run(np.ones((3, 2), np.float32))["Y"].numpy()
    assert found.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_estimators_give_the_answers_of_scikit_learn() -> None:
    pytest.importorskip("skl2onnx")
    from sklearn.datasets import load_iris
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table, labels = load_iris(return_X_y=True)
    forest, scaled = RandomForestClassifier(5, random_state=0), make_pipeline(StandardScaler(), LogisticRegression())
    for classifier in (forest, scaled):
        classifier.fit(table, labels)
        with webinfer.from_sklearn(classifier, table).session(backend="wasm") as session:
            found = [tensor.numpy() for tensor in session.run(table.astype(np.float32)).values()]
        assert np.array_equal(found[0], classifier.predict(table))
        assert np.allclose(found[1], classifier.predict_proba(table), atol=1e-4)
    regressor = GradientBoostingRegressor(n_estimators=5).fit(table, table[:, 0])
    with webinfer.from_sklearn(regressor, table).session(backend="wasm") as session:
        (found,) = session.run(table.astype(np.float32)).values()
    assert np.allclose(found.numpy().ravel(), regressor.predict(table), atol=1e-4)


def test_classifiers_without_probabilities_are_converted_too() -> None:
    pytest.importorskip("skl2onnx")
    from sklearn.datasets import load_iris
    from sklearn.svm import LinearSVC

    table, labels = load_iris(return_X_y=True)
    classifier = LinearSVC().fit(table, labels)
    with webinfer.from_sklearn(classifier, table).session(backend="wasm") as session:
        found = next(iter(session.run(table.astype(np.float32)).values())).numpy()
    assert np.array_equal(found, classifier.predict(table))


OLD_ML = "The model is using version 4 of domain 'ai.onnx.ml' not supported yet by this library."
NO_OPTION = "Option 'zipmap' not in ['nocl', 'raw_scores'] for class 'LinearSVC'."


@pytest.mark.parametrize(
    "refused", [[NameError(NO_OPTION)], [RuntimeError(OLD_ML)], [RuntimeError(OLD_ML), NameError(NO_OPTION)]]
)
def test_what_a_converter_refuses_is_left_out(refused, monkeypatch) -> None:
    """As for LinearSVC, which has no option for probabilities, and IsolationForest, which needs older operators."""
    pytest.importorskip("onnx")
    from onnx import load_from_string
    from tests.compat.onnx_files import product

    asked, left = [], list(refused)

    def to_onnx(estimator, sample, options=None, target_opset=None):
        asked.append((options, target_opset))
        if left:
            raise left.pop(0)
        return load_from_string(product())

    monkeypatch.setitem(sys.modules, "skl2onnx", types.SimpleNamespace(to_onnx=to_onnx))
    estimator = types.SimpleNamespace(classes_=[0, 1])
    assert isinstance(webinfer.from_sklearn(estimator, np.zeros((2, 3), np.float32)), OnnxModel)
    kinds = {type(error) for error in refused}
    assert asked[0] == ({id(estimator): {"zipmap": False}}, None)
    assert (asked[-1][0] is None) == (NameError in kinds)
    assert asked[-1][1] == ({"": 18, "ai.onnx.ml": 3} if RuntimeError in kinds else None)


def test_other_errors_of_a_converter_are_told(monkeypatch) -> None:
    def to_onnx(estimator, sample, options=None, target_opset=None):
        raise RuntimeError("no converter")

    monkeypatch.setitem(sys.modules, "skl2onnx", types.SimpleNamespace(to_onnx=to_onnx))
    with pytest.raises(UnsupportedOpError, match="no converter"):
        webinfer.from_sklearn(types.SimpleNamespace(), np.zeros((2, 3), np.float32))


def test_modules_give_the_answers_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(), torch.nn.Linear(144, 5)
    module = torch.nn.Sequential(*layers).train()
    sample = torch.randn(1, 3, 8, 8)
    model = webinfer.from_torch(module, sample, inputs=["x"], outputs=["y"], open_sizes={"x": {0: "n"}, "y": {0: "n"}})
    assert module.training
    with torch.no_grad(), model.session(backend="wasm") as session:
        for batch in (1, 3):
            given = torch.randn(batch, 3, 8, 8)
            found = session.run({"x": given.numpy()})["y"].numpy()
            assert np.allclose(found, module.eval()(given).numpy(), atol=1e-4)


def _torch(export):
    """What `from_torch` asks of PyTorch, for machines without it."""
    torch = types.ModuleType("torch")
    torch.no_grad = contextlib.nullcontext
    torch.onnx = types.SimpleNamespace(export=export)
    return torch


class _Module:
    training = True

    def __call__(self, *given):
        if given == ("wrong",):
            raise RuntimeError("shapes do not fit")

    def eval(self):
        self.training = False

    def train(self, mode):
        self.training = mode


def test_modules_are_exported_in_evaluation_and_refusals_are_told(monkeypatch) -> None:
    seen = []

    def export(module, given, file, *, dynamo, **options):
        seen.append((module.training, given, dynamo, options["input_names"], options["opset_version"]))
        if options["input_names"] is None:
            raise RuntimeError("no such operator")
        file.write(b"model")

    monkeypatch.setitem(sys.modules, "torch", _torch(export))
    module = _Module()
    assert webinfer.from_torch(module, "x", inputs=["a"]) == b"model"
    assert seen == [(False, ("x",), False, ["a"], 18)]
    with pytest.raises(UnsupportedOpError, match="cannot export _Module: no such operator"):
        webinfer.from_torch(module, ("x", "y"))
    with pytest.raises(InputError, match="does not run on the sample: shapes do not fit"):
        webinfer.from_torch(module, "wrong")
    assert module.training
