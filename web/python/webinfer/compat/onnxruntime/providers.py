"""Execution providers: ONNX Runtime's names for places to compute, and webinfer's backends behind them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import webinfer
from webinfer.compat import registration

CPU = "CPUExecutionProvider"
# name -> backend, in the order of get_available_providers
BACKENDS = {"WebGpuExecutionProvider": "webgpu", "WebNNExecutionProvider": "webnn", CPU: "wasm"}
ALL = (
    "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
    "OpenVINOExecutionProvider", "DnnlExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider",
    "JsExecutionProvider", "CoreMLExecutionProvider", "DmlExecutionProvider", "WebNNExecutionProvider",
    "WebGpuExecutionProvider", "XnnpackExecutionProvider", "AzureExecutionProvider", CPU,
)  # fmt: skip


def get_all_providers() -> list[str]:
    """The names of providers that ONNX Runtime knows, webinfer's among them."""
    return list(ALL)


def get_available_providers() -> list[str]:
    """What can be used here, the fastest first: WebGPU where there is a device and waiting for it is possible, the CPU.

    WebNN is there on request only, by its name.
    """
    present = {found.name: found.present for found in webinfer.capabilities()}
    usable = present.get("webgpu", False) and present.get("jspi", True)  # only browsers list jspi
    return ["WebGpuExecutionProvider", CPU] if usable else [CPU]


def get_device() -> str:
    """The device that sessions run on if they are given no provider: "CPU"."""
    return "CPU"


def checked_providers(
    providers: Any, provider_options: Any, added: Sequence[tuple[str, dict[str, str]]]
) -> dict[str, dict[str, str]]:
    """The providers that can be used here, in order, with their options; the CPU comes last, always.

    Before the CPU alone comes the backend that `webinfer.compat.install` was given.

    Raises:  ValueError if they are not given as ONNX Runtime takes them
    """
    found = normalized(list(added) if providers is None else providers, provider_options, list(BACKENDS))
    if set(found) <= {CPU}:
        found = {name: {} for name, backend in BACKENDS.items() if backend == registration.preferred} | found
    found[CPU] = found.pop(CPU, {})
    return found


def check_and_normalize_provider_args(
    providers: Any, provider_options: Any, available_provider_names: Sequence[str]
) -> tuple[list[str], list[dict[str, str]]]:
    """The names and the options of providers in two lists.

    Raises:  ValueError if they are not given as ONNX Runtime takes them
    """
    found = normalized([] if providers is None else providers, provider_options, available_provider_names)
    return list(found), list(found.values())


def normalized(providers: Any, provider_options: Any, known: Sequence[str]) -> dict[str, dict[str, str]]:
    """The known ones of the providers, each once, with their options as texts; a warning for others."""
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise ValueError("'providers' should be a sequence.")
    found: dict[str, dict[str, str]] = {}
    for name, options in _pairs(providers, provider_options):
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=5)
            continue
        if name not in known:
            names = ", ".join(get_available_providers() if known == list(BACKENDS) else known)
            text = f"Specified provider '{name}' is not in available provider names.Available providers: '{names}'"
            warnings.warn(text, stacklevel=5)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return found


def _pairs(providers: Sequence[Any], provider_options: Any) -> list[tuple[str, dict[Any, Any]]]:
    """Names and options, checked."""
    if provider_options is None:
        pairs = [(one, {}) if isinstance(one, str) else one for one in providers]
        good = all(
            isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], dict)
            for one in pairs
        )
        if not good:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        return pairs
    if not isinstance(provider_options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(name, str) for name in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(options, dict) for options in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(providers, provider_options, strict=True))
