"""Random nodes that exports of language models are made of: weights of a few bits, attention with a cache."""

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import FuzzNode
from build_scripts.judge.fuzz.onnx.elementwise import Row

FLOAT32 = ("float32",)
MOST = 300  # terms of a sum
RANGE, LARGE = (-3.0, 3.0), 20.0  # of what attention reads: for scores that are no numbers ONNX Runtime gives 0


def _matmul_bits(d: Draw) -> FuzzNode:
    k = d.pick((3, 16, 32, 40, 64, 96))
    x = d.value(
        FLOAT32,
        2,
        3,
        lambda a: 0 < a.shape[-1] <= MOST,
        lambda kind: d.array(kind, (d.integer(1, 2), d.integer(1, 9), k)),
    )
    k, n, bits, block = d.known(x).shape[-1], d.pick((1, 4, 8, 12, 33)), d.pick((4, 4, 8)), d.pick((16, 32, 64, 128))
    blocks = -(-k // block)
    w = d.new(d.array("uint8", (n, blocks, block * bits // 8)), stored=True)
    inputs = [x, w, d.new(d.array("float32", (n * blocks,), 0.01, 0.2), stored=True)]
    if d.chance(0.5):
        inputs.append(d.new(d.array("uint8", (n * (-(-blocks * bits // 8)),)), stored=True))
    return d.node("com.microsoft.MatMulNBits", inputs, K=k, N=n, bits=bits, block_size=block)


def _group_query(d: Draw) -> FuzzNode:
    past, groups, share, size = d.pick((0, 0, 3, 7)), d.integer(1, 2), d.integer(1, 3), d.pick((16, 32))
    b, new = d.integer(1, 2), 1 if past else d.integer(1, 6)
    heads, whole = groups * share, past + new
    shape = (b, new, heads * size)
    q = d.value(
        FLOAT32,
        3,
        3,
        lambda a: a.shape == shape and bool((abs(a) < LARGE).all()),
        lambda kind: d.array(kind, shape, *RANGE),
    )
    low, high = RANGE
    k, v = (d.like(q, (b, new, groups * size), low=low, high=high) for _ in range(2))
    held = [d.like(q, (b, groups, past, size), low=low, high=high) for _ in range(2)] if past else ["", ""]
    lengths = [d.constant([whole - 1] * b, "int32"), d.constant(whole, "int32")]
    turned = d.chance(0.4)
    angles = [d.new(d.array("float32", (whole + 2, size // 2), -1, 1), stored=True) for _ in range(2 * turned)]
    return d.node(
        "com.microsoft.GroupQueryAttention", [q, k, v, *held, *lengths, *angles], outputs=3, num_heads=heads,
        kv_num_heads=groups, do_rotary=1 if turned else None, scale=d.maybe(0.3, 0.3),
        rotary_interleaved=d.maybe(d.integer(0, 1)) if turned else None,
        local_window_size=d.maybe(d.integer(1, 4), 0.3), softcap=d.maybe(5.0, 0.2),
    )  # fmt: skip


ROWS: dict[str, Row] = {
    "com.microsoft.GroupQueryAttention": _group_query,
    "com.microsoft.MatMulNBits": _matmul_bits,
}
