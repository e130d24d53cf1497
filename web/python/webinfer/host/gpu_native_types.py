"""C types that wgpu-py asks cffi for, read by one parse.

cffi reads the text of each new type together with the names of all others: 27 ms of CPU a type, 1.3 s for the 49 of the
first run on a device. The types of a function's arguments come of one parse; they are stored where cffi looks first.
"""

from __future__ import annotations

from typing import Any

from webinfer.flags import debug

STRUCTS = (
    "AdapterInfo", "BindGroupDescriptor", "BindGroupEntry", "BindGroupLayoutDescriptor", "BindGroupLayoutEntry",
    "BufferBindingLayout", "BufferDescriptor", "BufferMapCallbackInfo", "ChainedStruct", "CommandBufferDescriptor",
    "CommandEncoderDescriptor", "ComputePassDescriptor", "ComputePipelineDescriptor", "ComputeState",
    "DeviceDescriptor", "DeviceExtras", "DeviceLostCallbackInfo", "InstanceDescriptor", "Limits", "NativeLimits",
    "PassTimestampWrites", "PipelineLayoutDescriptor", "QuerySetDescriptor", "QueueDescriptor",
    "RequestAdapterCallbackInfo", "RequestAdapterOptions", "RequestDeviceCallbackInfo", "ShaderModuleDescriptor",
    "ShaderSourceWGSL", "StringView", "UncapturedErrorCallbackInfo",
)  # fmt: skip
LISTS = ("BindGroupEntry", "BindGroupLayout", "BindGroupLayoutEntry", "CommandBuffer", "FeatureName")
POINTERS = (*(f"WGPU{name} *" for name in STRUCTS), "WGPUChainedStruct * ", "uint8_t *")
ARRAYS = (*(f"WGPU{name}[]" for name in LISTS), "char []", "uint8_t []", "uint32_t []")
NUMBERS = ("intptr_t", "uintptr_t")


def read_types(ffi: Any) -> None:
    """Brings the types to a library's cffi object. Where cffi or wgpu have changed inside, each is read when asked."""
    arrays = [text.replace("[", "(*)[", 1) for text in ARRAYS]
    try:
        arguments = ffi.typeof(f"void(*)({', '.join((*POINTERS, *arrays, *NUMBERS))})").args
        pointed = {text: kind.item for text, kind in zip(ARRAYS, arguments[len(POINTERS) :], strict=False)}
        plain = dict(zip((*POINTERS, *ARRAYS, *NUMBERS), arguments, strict=True))
        for text, kind in (plain | pointed).items():
            ffi._parsed_types.setdefault(text, (kind, False))
    except (ffi.error, AttributeError, TypeError, ValueError) as error:
        debug(1, f"wgpu's types are read one by one: {error}")
