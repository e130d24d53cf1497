"""A depthwise convolution, the 1x1 convolution of its result, and the maximum pooling that the latter adds as its
residual, as one dispatch: how its work is divided, and whether it pays. The dispatch itself is in lowerings.fused.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.lowerings.variants import tuning_key, typical
from webinfer.graph.ir import Node, Value
from webinfer.lazy_dataclass import dataclass

# Of the 1x1 convolution: beyond, its own tiles save more than a dispatch costs; with 2^30 two graphs took 1.4 and 2.9
# times as long, with 2^24 five 1.02 times (H100, 2026-11-28).
MAX_PRODUCTS = 1 << 27
MAX_SHARES = 8  # shares that a tuner is asked to time
MAX_INVOCATIONS = 256  # WebGPU's limit of a workgroup: 128 took 1.03 times as long, 64 1.18 (H100, 2026-11-28)
# The search space: blocks of output channels, groups of four pixels, turns that an invocation takes at a sum.
BLOCKS, GROUPS, TURNS = (1, 2, 3, 4, 6, 8, 12), (1, 2, 4), (1, 2, 3, 4, 6, 8, 16)
LANES = 32  # invocations that a device runs in step: NVIDIA's; 16 and 64 took as long (H100, 2026-11-28)
SEPARATE = "separate"  # the name, in tunings, of computing the nodes one by one


class Share(NamedTuple):
    """What a workgroup computes: 4 * `groups` pixels by 4 * `quads` channels, `slices` invocations to a sum."""

    quads: int
    groups: int
    slices: int

    @property
    def name(self) -> str:
        """The name in tunings: pixels, channels, invocations that share a sum."""
        return f"fused_{4 * self.groups}x{4 * self.quads}_{self.slices}"

    @property
    def workgroup(self) -> int:
        """Invocations of a workgroup."""
        return self.quads * self.groups * self.slices


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """A 1x1 convolution (`pointwise`) with the nodes that its dispatch computes as well."""

    depthwise: Node
    pointwise: Node
    pool: Node | None = None

    @property
    def absorbed(self) -> tuple[Node, ...]:
        """The nodes that get no dispatch of their own."""
        return (self.depthwise, self.pool) if self.pool is not None else (self.depthwise,)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs of the absorbed nodes, which the dispatch reads instead of their results."""
        return tuple(node.required_input(0) for node in self.absorbed)

    @property
    def key(self) -> str:
        """The tuning key: everything that the speed depends on."""
        pooled = " + pool" if self.pool is not None else ""
        return f"{tuning_key(self.depthwise)} -> {tuning_key(self.pointwise)}{pooled}"

    def candidates(self, target: Target) -> tuple[str, ...]:
        """Names of shares worth timing, the default first, then SEPARATE."""
        ranked = sorted((cycles, share.name) for cycles, share in self._shares(target))
        return (*(name for _, name in ranked[:MAX_SHARES]), SEPARATE)

    def share(self, target: Target) -> Share | None:
        """How the work is divided among workgroups; None where the nodes are computed one by one."""
        chosen = target.tuned.get(self.key) if target.tuned else None
        shares = self._shares(target)
        if chosen == SEPARATE or not shares:
            return None
        known = next((share for _, share in shares if share.name == chosen), None) if chosen else None
        if known is None:
            least = min(cycles for cycles, _ in shares)
            known = min((share for cycles, share in shares if cycles == least), key=lambda share: share.name)
        return known

    def _shares(self, target: Target) -> list[tuple[float, Share]]:
        co = self.pointwise.output.type.shape[3]
        pixels, c4, co4 = typical(self.pointwise.output.type.size // co), -(-self.channels // 4), -(-co // 4)
        taps = self.depthwise.required_input(1).type.size // self.channels
        if self.buffers > target.limit("maxStorageBuffersPerShaderStage"):
            return []
        most = min(MAX_INVOCATIONS, target.limit("maxComputeInvocationsPerWorkgroup"))
        nbytes = target.limit("maxComputeWorkgroupStorageSize")
        return _rated_shares(pixels, c4, co4, taps, most, nbytes, target.cores)

    @property
    def buffers(self) -> int:
        """What the dispatch binds: the nodes' inputs but the value between them, and the result."""
        return sum(v is not None for v in (*self.depthwise.inputs, *self.pointwise.inputs))

    @property
    def channels(self) -> int:
        """Channels between the two convolutions."""
        return self.depthwise.output.type.shape[3]


@functools.cache
def _rated_shares(
    pixels: int, c4: int, co4: int, taps: int, invocations: int, nbytes: int, cores: int
) -> list[tuple[float, Share]]:
    """The shares that keep to so many invocations and bytes of workgroup memory, each behind its cycles."""
    found = []
    for quads in {-(-co4 // blocks) for blocks in BLOCKS if blocks <= co4}:
        for slices in {-(-c4 // turns) for turns in TURNS if turns <= c4}:
            for groups in GROUPS:
                count = quads * groups * slices
                if count > invocations:
                    break
                parts = count * 4 if slices > 1 else 0
                if 16 * (4 * groups * c4 + parts) <= nbytes:
                    share = Share(quads, groups, slices)
                    found.append((_cycles(share, count, pixels, c4, co4, taps, cores), share))
    return found


def _cycles(share: Share, count: int, pixels: int, c4: int, co4: int, taps: int, cores: int) -> float:
    """A rough count: how long one workgroup of `count` takes, and how long the device works in all."""
    quads, groups, slices = share
    invocations = -(-count // LANES) * LANES
    workgroups = -(-pixels // (4 * groups)) * -(-co4 // quads)
    results, sums = -(-4 * groups * c4 // count), -(-c4 // slices)
    adding = -(-4 * groups * quads // count) * slices if slices > 1 else 0
    latency = results * (200 + 20 * taps) + 200 + sums * 150 + adding * 30
    work = results * 16 * taps + sums * 90 + adding * 8
    waves = -(-workgroups // (cores * (1024 // invocations or 1)))
    return max(waves * latency, workgroups * invocations * work / (cores * 128))
