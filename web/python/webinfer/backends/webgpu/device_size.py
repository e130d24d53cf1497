"""How many cores a device has: WebGPU does not tell, and which kernel is best for a small product depends on it.

A wrong number costs a few percent, until a tuner has timed the candidates on the device itself.
"""

from __future__ import annotations

MEASURED = 132  # cores of the H100 and H200, on which the costs of kernels were measured
# Words in the names of adapters: a model's or an architecture's, then a vendor's. Cores by the vendors' data sheets: of
# an architecture the ones of its middle models, of a vendor those of what most people have.
CORES = (
    ("h100", 132), ("h200", 132), ("hopper", 132), ("b200", 148), ("blackwell", 70), ("a100", 108), ("l40", 142),
    ("4090", 128), ("5090", 170), ("3090", 82), ("lovelace", 46), ("ampere", 46), ("turing", 40), ("t4", 40),
    ("nvidia", 40), ("geforce", 40), ("quadro", 40), ("apple", 16),
    ("radeon", 36), ("amd", 36), ("rdna", 36), ("gcn", 16), ("arc", 28), ("intel", 12), ("adreno", 6), ("qualcomm", 6),
    ("mali", 10), ("arm", 10),
)  # fmt: skip


def cores_of(name: str, unknown: int = MEASURED) -> int:
    """The cores of an adapter by its name, or `unknown` (by default of the device that was measured)."""
    words = name.lower().replace("(", " ").replace("/", " ").replace("-", " ").split()
    return next((cores for mark, cores in CORES if any(word.startswith(mark) for word in words)), unknown)
