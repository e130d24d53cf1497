"""The GPU that a process of CPython takes: the one that its environment names."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("wgpu")

from webinfer.errors import BackendUnavailableError
from webinfer.host import gpu_native_adapter

NVIDIA, OTHER = 0x10DE, 0x1002


def adapter(name: str, kind: str = "DiscreteGPU", vendor: int = NVIDIA, backend: str = "Vulkan") -> Any:
    return SimpleNamespace(info={"device": name, "adapter_type": kind, "vendor_id": vendor, "backend_type": backend})


TWO = [
    adapter("card 0"),
    adapter("card 0", backend="OpenGL"),
    adapter("built in", "IntegratedGPU", OTHER),
    adapter("card 1"),
    adapter("software", "CPU", 0),
]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the machine's adapters and the environment, and says which adapter is taken."""

    def take(adapters: list[Any], **environment: str) -> str:
        gpu = SimpleNamespace(
            enumerate_adapters_sync=lambda: adapters, request_adapter_sync=lambda **_: adapter("the fastest")
        )
        monkeypatch.setattr(gpu_native_adapter.wgpu, "gpu", gpu)
        for name in ("WEBINFER_GPU", "CUDA_VISIBLE_DEVICES", "WEBINFER_WORKER"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return str(gpu_native_adapter.chosen_adapter().info["device"])

    return take


@pytest.mark.parametrize(
    ("environment", "taken"),
    [
        ({}, "the fastest"),
        ({"WEBINFER_GPU": "0"}, "card 0"),
        ({"WEBINFER_GPU": "1"}, "built in"),
        ({"WEBINFER_GPU": "2"}, "card 1"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "card 1"),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, "card 1"),
        ({"CUDA_VISIBLE_DEVICES": "7"}, "the fastest"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "the fastest"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937"}, "the fastest"),
        ({"CUDA_VISIBLE_DEVICES": "1", "WEBINFER_GPU": "0"}, "card 0"),
        ({"WEBINFER_WORKER": "0"}, "card 0"),
        ({"WEBINFER_WORKER": "4"}, "built in"),
        ({"WEBINFER_WORKER": "4", "CUDA_VISIBLE_DEVICES": "1"}, "card 1"),
        ({"WEBINFER_WORKER": "4", "WEBINFER_GPU": "2"}, "card 1"),
    ],
)
def test_the_environment_names_the_gpu(machine: Any, environment: dict[str, str], taken: str) -> None:
    assert machine(TWO, **environment) == taken


def test_one_card_is_the_fastest_whatever_cuda_says(machine: Any) -> None:
    assert machine(TWO[:3], CUDA_VISIBLE_DEVICES="0") == "the fastest"


def test_software_counts_where_nothing_else_is(machine: Any) -> None:
    assert machine(TWO[4:], WEBINFER_GPU="0") == "software"


@pytest.mark.parametrize("wrong", ["3", "-1", "card 1"])
def test_a_number_that_no_gpu_has_is_refused_with_those_there_are(machine: Any, wrong: str) -> None:
    with pytest.raises(BackendUnavailableError, match=r"0: card 0; 1: built in; 2: card 1"):
        machine(TWO, WEBINFER_GPU=wrong)


def test_a_driver_that_cannot_even_list_gpus_is_no_adapter(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(TWO)

    def fail() -> Any:
        raise RuntimeError("no library")

    monkeypatch.setattr(gpu_native_adapter.wgpu.gpu, "enumerate_adapters_sync", fail)
    monkeypatch.setenv("WEBINFER_GPU", "0")
    with pytest.raises(BackendUnavailableError, match="no GPU adapter: no library; install"):
        gpu_native_adapter.chosen_adapter()
