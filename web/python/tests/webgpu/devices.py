"""Three kinds of device that graphs are planned for: plain hardware, a processor, hardware with newer features."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import Target

LIMITS = {
    "maxComputeWorkgroupsPerDimension": 65535,
    "maxStorageBufferBindingSize": 1 << 27,
    "maxBufferSize": 1 << 28,
    "maxStorageBuffersPerShaderStage": 8,
    "minStorageBufferOffsetAlignment": 256,
    "minUniformBufferOffsetAlignment": 256,
}
HARDWARE, SOFTWARE = Target(LIMITS), Target(LIMITS, software=True)
MODERN = Target(LIMITS, frozenset({"packed_4x8_integer_dot_product", "subgroups"}))
