"""Where ONNX Runtime says that memory lies: numbers of devices, memory infos, settings of arenas: only kept."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from webinfer.lazy_dataclass import dataclass


class OrtAllocatorType(enum.IntEnum):
    """How memory is given out."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """What memory is for."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    """Whether a device alone can reach memory."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices, in memory infos."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtDeviceVendorId(enum.IntEnum):
    """Vendors of devices, by their numbers on PCI."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    QUALCOMM = 0x4D4F4351
    INTEL = 0x8086


@dataclass(frozen=True)
class OrtMemoryInfo:
    """A name, kind and place of memory."""

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = 0

    @staticmethod
    def create_v2(
        name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
        device_mem_type: OrtDeviceMemoryType, alignment: int, allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:  # fmt: skip
        """As the constructor, with the vendor and what can reach the memory."""
        return OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT, device_mem_type, vendor_id)


CPU_MEMORY = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


class OrtArenaCfg:
    """Settings of an arena, by position or as a mapping; webinfer plans its memory itself and only keeps them."""

    _names = (
        "max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes",
    )  # fmt: skip

    def __init__(self, *settings: Any) -> None:
        given = settings[0] if len(settings) == 1 and isinstance(settings[0], Mapping) else None
        if given is None and len(settings) != 4:
            raise TypeError("OrtArenaCfg needs four numbers or a mapping")
        values = given if given is not None else dict(zip(self._names, settings, strict=False))
        for name in values:
            if name not in self._names:
                raise ValueError(f"Invalid OrtArenaCfg option: {name}")
        for name in self._names:
            setattr(self, name, int(values.get(name, 0 if name == "max_mem" else -1)))


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Nothing: webinfer plans its memory itself."""


def create_and_register_allocator_v2(
    provider_type: str, mem_info: OrtMemoryInfo, provider_options: Mapping[str, str], arena_cfg: OrtArenaCfg | None
) -> None:
    """Nothing: webinfer plans its memory itself."""
