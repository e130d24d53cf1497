"""Language models on a GPU: weights stay in the file's blocks, keys and values in their cache.

A late part: pages that run no language model load neither this nor its shaders (web/shaders/language), which are added
here to those that can be rendered.
"""

from webinfer.backends.webgpu.dispatch import Lower
from webinfer.backends.webgpu.language import attention, packed, products, sampling
from webinfer.codegen.templates import add_bundle

__all__ = ["LOWERINGS"]

LOWERINGS: dict[str, Lower] = {
    "block_matmul": products.block_matmul,
    "block_rows": products.block_rows,
    "cached_attention": attention.cached_attention,
    "packed_matmul": packed.packed_matmul,
    "sample": sampling.sample,
}
add_bundle(__package__)
