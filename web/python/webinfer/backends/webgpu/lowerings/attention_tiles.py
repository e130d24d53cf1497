"""The declared search space of attention: how many queries and keys a workgroup takes at a time."""

from __future__ import annotations

from dataclasses import replace

from webinfer.backends.webgpu.dispatch import Target
from webinfer.graph.dims import Size
from webinfer.graph.ir import Node
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.attention import by_heads

MAX_TILES = 8  # that a tuner is asked to time
MAX_SUMS = 160  # numbers that an invocation keeps in registers: logits and results
WHOLE_QUADS = 32  # of a row that comes as a whole; 32 queries and keys of 64 quads would take 66 kB of workgroup memory
FEW_ROWS = 2  # of an invocation, which may write out and load ahead more
# Products of four in the text of a loop that is written out as a whole: of more than two rows an invocation, or of few.
# Otherwise parts of it are. More of them keep too much in registers (H100, Dawn: 1.15 to 1.35 times as slow).
MAX_WRITTEN, PART_WRITTEN = {False: 200, True: 256}, 128
MAX_AHEAD = 8  # quads that an invocation loads ahead, unless it has many rows
# Fitted to 147 timings on an H100 (Dawn, 2026-11-26; 14 % off, root mean square), in cycles of a core's schedulers.
LOAD_CYCLES = 11.4  # of a load of a quad from workgroup memory, where a product takes one
REST_CYCLES = 0.75  # of everything else
LATENCIES = 1.6, 3.6  # cycles until a product, and everything else, of a workgroup alone is done
CORE_BYTES = 49_000  # of workgroup memory that a core has at work, whatever it has
CORE_REGISTERS, SPARE_REGISTERS = 65536, 52  # of a core, and of an invocation besides sums and operands
START_CYCLES = 5500.0
BARRIER_CYCLES = (
    30.0  # of a barrier between slices of wide rows: not fitted, a guess (2026-11-28, right in lavapipe only)
)
CLASSES, LARGEST = (256,), 1024  # open sizes that share a tile: two, as each class may need a shader of its own


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of an attention."""

    batches: int
    heads: int
    groups: int  # heads of keys and values
    queries: int
    keys: int
    depth: int  # elements of a query and a key
    width: int  # elements of a value

    @property
    def d4(self) -> int:
        """Quads of a query and a key."""
        return -(-self.depth // 4)

    @property
    def e4(self) -> int:
        """Quads of a value."""
        return -(-self.width // 4)

    @property
    def is_wide(self) -> bool:
        """Whether rows are too long to lie in workgroup memory as a whole."""
        return max(self.d4, self.e4) > WHOLE_QUADS


def sizes_of(node: Node) -> Sizes:
    """The sizes of an attention node."""
    b, h, n, d = by_heads(node.required_input(0).type.shape, node.attrs.inner[0])
    _, g, keys, e = by_heads(node.required_input(2).type.shape, node.attrs.inner[2])
    return Sizes(b, h, g, n, keys, d, e)


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """A workgroup's share: `ty` * `per_rows` queries, 4 * `tx` * `quads_keys` keys at a time, tx * ty invocations.

    With a `slice`, as many quads of queries and keys come at a time: attention_wide.wgsl.
    """

    tx: int
    ty: int
    per_rows: int
    quads_keys: int
    slice: int = 0

    @property
    def rows(self) -> int:
        """Queries of a workgroup."""
        return self.ty * self.per_rows

    @property
    def keys(self) -> int:
        """Keys of a block."""
        return 4 * self.tx * self.quads_keys

    @property
    def name(self) -> str:
        """The name in tunings."""
        kind = f"attention_wide{self.slice}" if self.slice else "attention"
        return f"{kind}_{self.rows}x{self.keys}_{self.per_rows}x{4 * self.quads_keys}"

    def nbytes(self, s: Sizes) -> int:
        """Bytes of workgroup memory; rows are filled up to odd numbers of quads."""
        depth = self.slice or s.d4
        keys = max(self.keys * (depth | 1), self.values(s) * (s.e4 | 1))
        quads = self.rows * (depth | 1) + keys + self.rows * (self.tx * self.quads_keys + 1)
        return 16 * quads + 4 * self.rows * self.tx

    def values(self, s: Sizes) -> int:
        """Values that come at a time: all of a block, or as many as fit where a slice of keys was; four or more."""
        if not self.slice:
            return self.keys
        room = self.keys * (self.slice | 1) // (s.e4 | 1)
        return next((n for n in range(self.keys, 4, -4) if self.keys % n == 0 and n <= room), 4)

    def loops(self, s: Sizes) -> tuple[int, int, bool]:
        """Quads of a logit and quads of keys that are written out, and whether keys and values are loaded ahead."""
        most = MAX_WRITTEN[self.per_rows <= FEW_ROWS]
        found = []
        values = -(-s.e4 // self.tx)
        for times, each in ((self.slice or s.d4, self.quads_keys), (self.values(s) // 4, values)):
            whole = 4 * self.per_rows * each * times <= most
            part = max(1, PART_WRITTEN // (4 * self.per_rows * each))
            found.append(times if whole else _divisor(times, part))
        loads = -(-self.keys * max(s.d4, s.e4) // (self.tx * self.ty))
        return found[0], found[1], loads <= MAX_AHEAD and self.per_rows <= FEW_ROWS + 1

    def fits(self, s: Sizes, target: Target) -> bool:
        """Whether the device has the workgroup memory and the invocations, and registers will do."""
        sums = 4 * self.per_rows * (self.quads_keys + -(-s.e4 // self.tx))
        return (
            s.is_wide == bool(self.slice)
            and self.nbytes(s) <= target.limit("maxComputeWorkgroupStorageSize")
            and self.tx * self.ty <= target.limit("maxComputeInvocationsPerWorkgroup")
            and (sums <= MAX_SUMS or self in LAST)
        )

    def cycles(self, s: Sizes, cores: int) -> float:
        """A rough count of cycles, in waves of workgroups that run together: what they issue, or wait for."""
        values, invocations = -(-s.e4 // self.tx), self.tx * self.ty
        products = self.per_rows * (16 * self.quads_keys * s.d4 + 4 * values * self.keys)
        loads = s.d4 * (self.per_rows + 4 * self.quads_keys) + self.keys // 4 * (self.per_rows + 4 * values)
        rest: float = self.per_rows * (3 * self.tx + 30 * self.quads_keys + 4 * values + 10)
        rest += 8 * self.keys * (s.d4 + s.e4) // invocations
        if self.slice:
            rest += 8 * self.rows * s.d4 // invocations + BARRIER_CYCLES * (
                2 * -(-s.d4 // self.slice) + 2 * self.keys // self.values(s)
            )
        warps = -(-invocations // 32)
        registers = min(255, 4 * self.per_rows * (self.quads_keys + values + 1) + 16 + SPARE_REGISTERS)
        resident = min(CORE_BYTES // (self.nbytes(s) + 1024), CORE_REGISTERS // (32 * warps * registers), 32)
        issued = warps * (products + LOAD_CYCLES * loads + REST_CYCLES * rest) / 4
        alone = -(-warps // 4) * (LATENCIES[0] * products + LATENCIES[1] * rest)
        waves, left = divmod(s.batches * s.heads * -(-s.queries // self.rows), cores * max(1, resident))
        cycles = waves * max(max(1, resident) * issued, alone)
        if left:
            cycles += max(-(-left // cores) * issued, alone)
        return cycles * -(-s.keys // self.keys) + START_CYCLES


def _divisor(number: int, most: int) -> int:
    return next(n for n in range(min(number, most), 0, -1) if number % n == 0)


TILES = tuple(
    AttentionTile(*numbers)
    for numbers in (
        (16, 16, 3, 1), (4, 32, 3, 1), (8, 16, 3, 1), (8, 8, 3, 1), (4, 16, 3, 1), (16, 8, 3, 1), (8, 16, 3, 2),
        (16, 8, 6, 1), (8, 16, 4, 1), (8, 8, 4, 1), (16, 8, 4, 1), (4, 32, 4, 1), (8, 16, 2, 1), (4, 32, 2, 1),
        (16, 8, 2, 1), (8, 8, 2, 1), (16, 4, 2, 1), (4, 16, 2, 1), (4, 8, 2, 1), (16, 8, 1, 1), (16, 4, 1, 1),
        (4, 8, 1, 1), (2, 4, 1, 1),
    )
)  # fmt: skip
WIDE_TILES = tuple(
    AttentionTile(*numbers)
    for numbers in (
        (8, 16, 2, 1, 8), (8, 16, 2, 1, 16), (8, 8, 4, 1, 8), (8, 8, 4, 1, 16), (16, 8, 4, 1, 8), (16, 8, 4, 1, 16),
        (16, 8, 2, 1, 4), (16, 8, 2, 1, 8), (16, 8, 2, 1, 16), (16, 16, 2, 1, 8), (16, 16, 3, 1, 8), (16, 16, 4, 1, 8),
        (16, 8, 1, 1, 4), (16, 8, 1, 1, 8), (16, 4, 1, 1, 8), (16, 4, 1, 1, 16), (8, 8, 2, 1, 16), (8, 8, 1, 1, 16),
        (16, 2, 1, 1, 8), (8, 8, 1, 1, 8),
    )
)  # fmt: skip
LAST = TILES[-1], WIDE_TILES[-1]  # which every device runs
BY_NAME = {tile.name: tile for tile in (*TILES, *WIDE_TILES)}


def tuning_key(node: Node) -> str:
    """The key of an attention in tunings: everything that its speed depends on."""
    s = sizes_of(node)
    heads = f"{s.batches}x{s.heads}/{s.groups}"
    masked = " masked" if node.optional_input(3) is not None else ""
    return f"attention {node.required_input(0).type.dtype} {heads} q{s.queries}x{s.depth} k{s.keys}x{s.width}{masked}"


def end_of_class(size: int, classes: tuple[int, ...], largest: int) -> int:
    """The number itself; of a size that follows symbols the upper end of its class, by which kernels are chosen."""
    return next((most for most in classes if size <= most), largest) if isinstance(size, Size) else size


def _typical(s: Sizes) -> Sizes:
    """Sizes that a tile is chosen for."""
    batches, queries, keys = (end_of_class(size, CLASSES, LARGEST) for size in (s.batches, s.queries, s.keys))
    return replace(s, batches=batches, queries=queries, keys=keys)


def candidates(node: Node, target: Target) -> tuple[str, ...]:
    """Names of the tiles that may compute this node, the default first."""
    ranked = _ranked(_typical(sizes_of(node)), target)
    return tuple(tile.name for tile in ranked[: 1 if target.software else MAX_TILES])


def best_tile(s: Sizes, target: Target) -> AttentionTile:
    """The tile that is thought to be the fastest for these sizes."""
    return _ranked(s, target)[0]


def _ranked(s: Sizes, target: Target) -> list[AttentionTile]:
    return sorted(
        (tile for tile in BY_NAME.values() if tile.fits(s, target)), key=lambda tile: tile.cycles(s, target.cores)
    )


def choose_tile(node: Node, target: Target) -> AttentionTile:
    """The tuned tile of a node if there is one and it may run here, else the default."""
    chosen = BY_NAME.get(target.tuned.get(tuning_key(node), "")) if target.tuned else None
    if chosen is not None and chosen.fits(_typical(sizes_of(node)), target):
        return chosen
    return BY_NAME[candidates(node, target)[0]]
