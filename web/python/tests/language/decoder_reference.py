"""A decoder of the llama family in float32 NumPy, written from the equations: what engines are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from webinfer.backends.reference.language import weights
from webinfer.importers.gguf.architecture import architecture_of
from webinfer.importers.gguf.container import read_file

Array = np.ndarray[Any, np.dtype[Any]]


class ReferenceDecoder:
    """A model read from a file; all weights are float32, all logits are computed from the first token on."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.file = read_file(memoryview(data), "reference")
        self.model = architecture_of(self.file)

    @cache  # noqa: B019 - lives as long as a test
    def tensor(self, name: str) -> Array:
        stored = self.file.tensors[name]
        assert stored.type is not None
        rows = stored.sizes[1] if len(stored.sizes) > 1 else 1
        found = weights(np.frombuffer(stored.data, np.uint8).reshape(rows, -1), stored.type)
        return found if len(stored.sizes) > 1 else found.reshape(-1)

    def _norm(self, x: Array, name: str) -> Array:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.model.epsilon)) * self.tensor(name)

    def _turned(self, x: Array) -> Array:
        angles = np.arange(len(x), dtype=np.float32)[:, None] * np.array(self.model.speeds, np.float32)
        c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
        half, y = len(self.model.speeds), x.copy()
        a, b = (
            (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
            if self.model.adjacent
            else (slice(half), slice(half, 2 * half))
        )
        y[..., a], y[..., b] = x[..., a] * c - x[..., b] * s, x[..., a] * s + x[..., b] * c
        return y

    def _product(self, x: Array, name: str) -> Array:
        y = x @ self.tensor(f"{name}.weight").T
        return y + self.tensor(f"{name}.bias") if f"{name}.bias" in self.file.tensors else y

    def hidden(self, ids: Sequence[int]) -> Array:
        """The last block's normed results, one row a token."""
        m, count = self.model, len(ids)
        x = self.tensor("token_embd.weight")[list(ids)]
        seen = np.tril(np.ones((count, count), bool))
        for block in range(m.layers):
            at = f"blk.{block}."
            normed = self._norm(x, f"{at}attn_norm.weight")
            q, k, v = (self._product(normed, f"{at}attn_{n}").reshape(count, -1, m.head_width) for n in "qkv")
            if m.head_norms:
                q, k = (self._norm(t, f"{at}attn_{n}_norm.weight") for t, n in ((q, "q"), (k, "k")))
            k, v = (np.repeat(t, m.heads // m.groups, axis=1) for t in (self._turned(k), v))
            logits = np.einsum("ihd,jhd->hij", self._turned(q), k) / np.float32(np.sqrt(m.head_width))
            logits = np.where(seen, logits, -np.inf)
            share = np.exp(logits - logits.max(-1, keepdims=True))
            share /= share.sum(-1, keepdims=True)
            x = x + self._product(np.einsum("hij,jhd->ihd", share, v).reshape(count, -1), f"{at}attn_output")
            normed = self._norm(x, f"{at}ffn_norm.weight")
            gate, up = (self._product(normed, f"{at}ffn_{n}") for n in ("gate", "up"))
            x = x + self._product(gate / (1 + np.exp(-gate)) * up, f"{at}ffn_down")
        return self._norm(x, "output_norm.weight")

    def logits(self, ids: Sequence[int]) -> Array:
        """One row a token."""
        head = "output" if "output.weight" in self.file.tensors else "token_embd"
        return self.hidden(ids) @ self.tensor(f"{head}.weight").T
