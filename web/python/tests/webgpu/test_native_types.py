"""Types of C that are read by one parse are the ones that cffi reads one by one."""

from types import SimpleNamespace

import pytest

gpu_native_types = pytest.importorskip("webinfer.host.gpu_native_types")


def test_types_that_are_read_together_are_those_read_alone() -> None:
    pytest.importorskip("wgpu")
    from wgpu.backends.wgpu_native import ffi

    gpu_native_types.read_types(ffi)
    for text in (*gpu_native_types.POINTERS, *gpu_native_types.ARRAYS, *gpu_native_types.NUMBERS):
        together, is_function = ffi._parsed_types.pop(text)
        assert (together, is_function) == (ffi.typeof(text), False), text


def test_what_is_no_known_cffi_is_left_as_it_is() -> None:
    class OtherError(Exception):
        pass

    def typeof(_: str) -> None:
        raise OtherError("no such type")

    gpu_native_types.read_types(SimpleNamespace(typeof=typeof, error=OtherError))
    gpu_native_types.read_types(SimpleNamespace(error=OtherError))
