"""Sums of products of tensors whose axes have letters, as batched products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.operation import BaseOperation
from webinfer.importers.core.whole_product import whole_product
from webinfer.ops import gather, matmul, reduce

_MORE = "ΑΒΓΔΕΖΗΘ"  # the axes that an ellipsis stands for, the last one last


class _Term:
    """A tensor with a letter for each axis, none twice."""

    def __init__(self, op: BaseOperation, x: Value, letters: str) -> None:
        if len(letters) != x.type.rank:
            op.fail(f"{letters!r} does not fit the axes of {x.type.shape}")
        self.op, self.x, self.letters = op, x, letters
        for letter in dict.fromkeys(letters):
            if letters.count(letter) > 1:
                self._diagonal(letter)

    def size(self, letter: str) -> int:
        """How long the axis is; 1 if there is none."""
        return self.x.type.shape[self.letters.index(letter)] if letter in self.letters else 1

    def order(self, letters: Sequence[str]) -> Value:
        """The tensor with axes in this order, those that it lacks of size 1."""
        turned = self.op.transpose(self.x, [self.letters.index(c) for c in letters if c in self.letters])
        return self.op.reshape(turned, [self.size(c) for c in letters])

    def without(self, axes: Sequence[str], kind: Op | None = None) -> None:
        """Sums over axes, or drops those of size 1."""
        if not axes:
            return
        rest = [c for c in self.letters if c not in axes]
        if kind is None:
            self.x = self.op.reshape(self.x, [self.size(c) for c in rest])
        else:
            self.x = self.op.emit(kind, [self.x], reduce.ReduceAttrs(tuple(map(self.letters.index, axes))))
        self.letters = "".join(rest)

    def _diagonal(self, letter: str) -> None:
        places = [i for i, c in enumerate(self.letters) if c == letter]
        size, rest = self.x.type.shape[places[0]], [c for c in self.letters if c != letter]
        if any(self.x.type.shape[i] != size for i in places):
            self.op.fail(f"axes {letter} of {self.x.type.shape} differ")
        within(f"{self.op.what}: elements of a diagonal", size, MAX_READ, "use smaller tensors")
        others = [i for i, c in enumerate(self.letters) if c != letter]
        turned = self.op.transpose(self.x, [*places, *others])
        flat = self.op.reshape(turned, (size ** len(places), *(self.x.type.shape[i] for i in others)))
        step = sum(size**i for i in range(len(places)))
        at = self.op.constant([i * step for i in range(size)], DType.INT32)
        self.x = self.op.emit(gather.GATHER, [flat, at], gather.GatherAttrs(0))
        self.letters = letter + "".join(rest)


def _spelled(op: BaseOperation, equation: str, tensors: Sequence[Value]) -> tuple[list[_Term], str]:
    """The tensors with their letters, and the letters of the result."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(tensors):
        op.fail(f"{len(words)} terms for {len(tensors)} tensors")
    longest, terms = 0, []
    for word, x in zip(words, tensors, strict=True):
        count = x.type.rank - len(word.replace("...", ""))
        if "..." in word and not 0 <= count <= len(_MORE):
            op.fail(f"the term {word} does not fit {x.type.shape}")
        longest = max(longest, count if "..." in word else 0)
        terms.append((x, word.replace("...", _MORE[len(_MORE) - count :], 1)))
    more = _MORE[len(_MORE) - longest :]
    if not arrow:
        result = more + "".join(sorted(c for c in set(left) - {",", "."} if left.count(c) == 1))
    else:
        result = result.replace("...", more, 1)
    letters = "".join(word for _, word in terms) + result
    if not all(c.isalpha() for c in letters) or len(set(result)) != len(result):
        op.fail(f"{equation[:80]!r} is not an equation")
    return [_Term(op, x, word) for x, word in terms], result


def einsum(op: BaseOperation, equation: str, tensors: Sequence[Value]) -> Value:
    """The sum of products that an equation names: letters that are not in the result are summed over."""
    terms, result = _spelled(op, equation, tensors)
    for i, term in enumerate(terms):
        elsewhere = {*result, *(c for k, other in enumerate(terms) if k != i for c in other.letters)}
        term.without([c for c in term.letters if c not in elsewhere], reduce.REDUCE_SUM)
    done = terms[0]
    for i, term in enumerate(terms[1:], 2):
        done = _product(op, done, term, {*result, *(c for later in terms[i:] for c in later.letters)})
    return done.order(result)


def _product(op: BaseOperation, a: _Term, b: _Term, wanted: set[str]) -> _Term:
    """Two tensors multiplied, summed over the letters of both that nobody wants any more."""
    for one, other in ((a, b), (b, a)):  # what is repeated along an axis need not have it
        one.without([c for c in one.letters if one.size(c) == 1 and other.size(c) != 1])
    both = [c for c in a.letters if c in b.letters]
    if any(a.size(c) != b.size(c) for c in both):
        op.fail(f"axes {both} of {a.x.type.shape} and {b.x.type.shape} differ")
    batch, summed = [c for c in both if c in wanted], [c for c in both if c not in wanted]
    rows, columns = ([c for c in t.letters if c not in both] for t in (a, b))
    sizes = {c: term.size(c) for term in (a, b) for c in term.letters}

    def matrix(term: _Term, *groups: Sequence[str]) -> Value:
        turned = term.order([c for group in groups for c in group])
        return op.reshape(turned, [math.prod(sizes[c] for c in group) for group in groups])

    left, right = matrix(a, batch, rows, summed), matrix(b, batch, summed, columns)
    if left.type.dtype.is_float:
        y = op.emit(matmul.MATMUL, [left, right, None], matmul.MatmulAttrs())
    else:
        y = whole_product(op, left, right)
    made = [*batch, *rows, *columns]
    return _Term(op, op.reshape(y, [sizes[c] for c in made]), "".join(made))
