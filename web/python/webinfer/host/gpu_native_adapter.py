"""Which of a machine's GPUs a process of CPython takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import wgpu

from webinfer.errors import BackendUnavailableError

VARIABLE = "WEBINFER_GPU"  # the number of a GPU of this machine, from 0
CUDA = "CUDA_VISIBLE_DEVICES"  # what Ray and others set for a process that shall have a GPU of its own
WORKER = "WEBINFER_WORKER"  # the number of a process of several that share a machine's GPUs
NVIDIA = 0x10DE  # vendor, of the PCI's register
HARDWARE = ("DiscreteGPU", "IntegratedGPU")
TODO = "install a Vulkan driver (Mesa's lavapipe will do)"


def chosen_adapter() -> Any:
    """The adapter of this process: the one that the environment names, else the fastest.

    Raises:  BackendUnavailableError if there is none, or none of that number
    """
    fastest = partial(wgpu.gpu.request_adapter_sync, power_preference="high-performance")
    adapter = _named(os.environ) or _answer(fastest)
    if adapter is None:
        raise BackendUnavailableError(f"no GPU adapter; {TODO}")
    return adapter


def _answer(ask: Callable[[], Any]) -> Any:
    """What wgpu says; whatever it raises means that there is no adapter."""
    try:
        return ask()
    except Exception as error:
        raise BackendUnavailableError(f"no GPU adapter: {error}; {TODO}") from error


def _named(environment: Mapping[str, str]) -> Any:
    """The adapter that a variable names; None if none does.

    Vulkan knows nothing of CUDA's variable, whose first number counts where there are several NVIDIA GPUs: the order
    is that of the bus in both. Without either, workers take GPUs in turn.
    """
    text = environment.get(VARIABLE, "").strip()
    cuda = environment.get(CUDA, "").split(",")[0].strip()
    worker = environment.get(WORKER, "")
    if text:
        return _numbered(text, _adapters())
    if cuda.isdecimal():
        cards = [one for one in _adapters() if one.info.get("vendor_id") == NVIDIA]
        return cards[int(cuda)] if len(cards) > 1 and int(cuda) < len(cards) else None
    if worker:
        adapters = _adapters()
        return adapters[int(worker) % len(adapters)] if len(adapters) > 1 else None
    return None


def _numbered(text: str, adapters: Sequence[Any]) -> Any:
    if text.isdecimal() and int(text) < len(adapters):
        return adapters[int(text)]
    there = "; ".join(f"{at}: {one.info['device']}" for at, one in enumerate(adapters)) or "none"
    raise BackendUnavailableError(f"{VARIABLE}={text!r} does not name a GPU of this machine, which has {there}")


def _adapters() -> list[Any]:
    """The machine's GPUs, each once; those in software only where there are no others."""
    every = [one for one in _answer(wgpu.gpu.enumerate_adapters_sync) if one.info["backend_type"] != "OpenGL"]
    return [one for one in every if one.info["adapter_type"] in HARDWARE] or every
