"""How elements lie in storage buffers, and the WGSL that loads and stores them four at a time.

A quad is four consecutive elements, stored as a whole: no two invocations ever share a word. Buffers
are rounded up so that the last quad fits (`storage_bytes`).
"""

from __future__ import annotations

import enum

from webinfer.dtypes import DType
from webinfer.graph.dims import maximum
from webinfer.lazy_dataclass import dataclass


class Element(enum.StrEnum):
    """What a binding holds. The `BITS` members move elements without looking at them."""

    __hash__ = str.__hash__

    F32 = "f32"
    F16 = "f16"
    I8 = "i8"
    U8 = "u8"
    I16 = "i16"
    U16 = "u16"
    I32 = "i32"
    U32 = "u32"
    I64 = "i64"
    U64 = "u64"
    I64_CUT = "i64_cut"  # read only: what no 32-bit integer holds is the nearest one
    U64_CUT = "u64_cut"
    BOOL = "bool"
    REAL_I8 = "real_i8"  # read only: int8 as the float32 that it is
    BITS8 = "bits8"
    BITS16 = "bits16"
    BITS32 = "bits32"
    BITS64 = "bits64"


_OF_DTYPE = {
    DType.FLOAT32: Element.F32, DType.FLOAT16: Element.F16, DType.INT8: Element.I8, DType.UINT8: Element.U8,
    DType.INT16: Element.I16, DType.UINT16: Element.U16, DType.INT32: Element.I32, DType.UINT32: Element.U32,
    DType.INT64: Element.I64, DType.UINT64: Element.U64, DType.BOOL: Element.BOOL,
}  # fmt: skip
_BITS = {1: Element.BITS8, 2: Element.BITS16, 4: Element.BITS32, 8: Element.BITS64}


def element_of(dtype: DType) -> Element:
    """The element that computes with values of `dtype`."""
    return _OF_DTYPE[dtype]


def bits_of(dtype: DType) -> Element:
    """The element that moves values of `dtype` bit for bit."""
    return _BITS[dtype.itemsize]


def place_of(dtype: DType) -> Element:
    """The element that positions of `dtype` are read as: far outside stays outside."""
    return {DType.INT64: Element.I64_CUT, DType.UINT64: Element.U64_CUT}.get(dtype, element_of(dtype))


def storage_bytes(nbytes: int, itemsize: int) -> int:
    """Bytes of a storage buffer for `nbytes` of elements: whole quads, a multiple of 16, never 0."""
    quad = max(16, 4 * itemsize)
    return maximum(quad, -(-nbytes // quad) * quad)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Layout:
    """WGSL of one element type; `$x` stands for the binding's name.

    `word` is the array's element, `scalar` and `quad` are the types that shaders compute with. `widen` makes a quad
    of a word `w` that holds one.
    """

    word: str
    scalar: str
    quad: str
    load: str
    load4: str
    store4: str
    widen: str = "return w;"


def _words(scalar: str) -> Layout:
    """One 32-bit word an element."""
    quad = f"vec4<{scalar}>"
    return Layout(
        quad, scalar, quad, "return $x[i >> 2u][i & 3u];", "return $x[q];", "$x[q] = v;",
    )  # fmt: skip


def _bytes(scalar: str) -> Layout:
    """Four elements a word; a signed shift brings the sign along."""
    typed = "bitcast<i32>($x[{}])" if scalar == "i32" else "$x[{}]"
    one, four = typed.format("i >> 2u"), typed.format("q")
    return Layout(
        "u32", scalar, f"vec4<{scalar}>",
        f"return ({one} << (24u - 8u * (i & 3u))) >> 24u;",
        f"return (vec4<{scalar}>({four}) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);",
        "let b = vec4<u32>(v) & vec4<u32>(255u); $x[q] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);",
    )  # fmt: skip


def _unsigned_bytes() -> Layout:
    """Four unsigned bytes a word, computed as i32 so that differences may be negative."""
    return Layout(
        "u32", "i32", "vec4<i32>",
        "return i32(($x[i >> 2u] >> (8u * (i & 3u))) & 255u);",
        "return vec4<i32>((vec4<u32>($x[q]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));",
        _bytes("i32").store4,
    )  # fmt: skip


def _sixteen_bits(scalar: str) -> Layout:
    """Two 16-bit elements a word, a quad is vec2<u32>."""
    typed = f"vec4<{scalar}>"
    pair = "vec4<u32>($x[q].xx, $x[q].yy)"
    word = "$x[i >> 2u][(i >> 1u) & 1u]"
    if scalar == "i32":
        word, pair = f"bitcast<i32>({word})", f"bitcast<vec4<i32>>({pair})"
    return Layout(
        "vec2<u32>", scalar, typed,
        f"return ({word} << (16u - 16u * (i & 1u))) >> 16u;",
        f"return ({pair} << vec4<u32>(16u, 0u, 16u, 0u)) >> vec4<u32>(16u);",
        "let h = vec4<u32>(v) & vec4<u32>(65535u); $x[q] = h.xz | (h.yw << vec2<u32>(16u));",
    )  # fmt: skip


def _unsigned_sixteen_bits() -> Layout:
    """Two unsigned 16-bit elements a word, computed as i32 so that differences may be negative."""
    return Layout(
        "vec2<u32>", "i32", "vec4<i32>",
        "return i32(($x[i >> 2u][(i >> 1u) & 1u] >> (16u * (i & 1u))) & 65535u);",
        "return vec4<i32>((vec4<u32>($x[q].xxyy) >> vec4<u32>(0u, 16u, 0u, 16u)) & vec4<u32>(65535u));",
        _sixteen_bits("i32").store4,
    )  # fmt: skip


def _two_words(scalar: str) -> Layout:
    """Two words an element, computed in the low one; the high word repeats the sign."""
    low = "vec4<u32>($x[2u * q].xz, $x[2u * q + 1u].xz)"
    one = "$x[i >> 1u][(i & 1u) << 1u]"
    if scalar == "i32":
        low, one = f"bitcast<vec4<i32>>({low})", f"bitcast<i32>({one})"
        high = "bitcast<vec4<u32>>(v >> vec4<u32>(31u))"
    else:
        high = "vec4<u32>(0u)"
    return Layout(
        "vec4<u32>", scalar, f"vec4<{scalar}>",
        f"return {one};", f"return {low};",
        f"let l = bitcast<vec4<u32>>(v); let h = {high}; "
        "$x[2u * q] = vec4<u32>(l.x, h.x, l.y, h.y); $x[2u * q + 1u] = vec4<u32>(l.z, h.z, l.w, h.w);",
    )  # fmt: skip


def _cut(scalar: str) -> Layout:
    """Two words an element, read as the nearest 32-bit integer."""
    plain = _two_words(scalar)
    one = "let w = $x[i >> 1u]; let k = (i & 1u) << 1u; let low = w[k]; let high = w[k + 1u]; "
    four = (
        "let p = $x[2u * q]; let r = $x[2u * q + 1u]; let low = vec4<u32>(p.xz, r.xz); "
        "let high = vec4<u32>(p.yw, r.yw); "
    )
    if scalar == "u32":
        one += "return select(~0u, low, high == 0u);"
        four += "return select(vec4<u32>(~0u), low, high == vec4<u32>(0u));"
    else:
        one += "let sign = bitcast<i32>(high) >> 31u; let cut = bitcast<i32>(low); "
        one += "return select(sign ^ 0x7fffffff, cut, bitcast<i32>(high) == cut >> 31u);"
        four += "let top = bitcast<vec4<i32>>(high); let sign = top >> vec4<u32>(31u); "
        four += "let cut = bitcast<vec4<i32>>(low); "
        four += "return select(sign ^ vec4<i32>(0x7fffffff), cut, top == cut >> vec4<u32>(31u));"
    return Layout(plain.word, plain.scalar, plain.quad, one, four, plain.store4)


_F16 = Layout(
    "vec2<u32>", "f32", "vec4<f32>",
    "return unpack2x16float($x[i >> 2u][(i >> 1u) & 1u])[i & 1u];",
    "let w = $x[q]; return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));",
    "$x[q] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));",
    widen="return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));",
)  # fmt: skip
_QUAD_I8 = "vec4<f32>((vec4<i32>(bitcast<i32>({})) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))"
_REAL_I8 = Layout(
    "u32", "f32", "vec4<f32>",
    "return f32((bitcast<i32>($x[i >> 2u]) << (24u - 8u * (i & 3u))) >> 24u);",
    f"return {_QUAD_I8.format('$x[q]')};",
    "",
    widen=f"return {_QUAD_I8.format('w')};",
)  # fmt: skip
_BITS64 = Layout(
    "vec2<u32>", "vec2<u32>", "array<vec2<u32>, 4>",
    "return $x[i];",
    "return array<vec2<u32>, 4>($x[4u * q], $x[4u * q + 1u], $x[4u * q + 2u], $x[4u * q + 3u]);",
    "$x[4u * q] = v[0]; $x[4u * q + 1u] = v[1]; $x[4u * q + 2u] = v[2]; $x[4u * q + 3u] = v[3];",
)  # fmt: skip
_LAYOUTS = {
    Element.F32: _words("f32"), Element.F16: _F16, Element.I8: _bytes("i32"), Element.U8: _unsigned_bytes(),
    Element.I16: _sixteen_bits("i32"), Element.U16: _unsigned_sixteen_bits(),
    Element.I32: _words("i32"), Element.U32: _words("u32"),
    Element.I64: _two_words("i32"), Element.U64: _two_words("u32"),
    Element.I64_CUT: _cut("i32"), Element.U64_CUT: _cut("u32"), Element.BOOL: _unsigned_bytes(),
    Element.BITS8: _bytes("u32"), Element.BITS16: _sixteen_bits("u32"), Element.BITS32: _words("u32"),
    Element.BITS64: _BITS64, Element.REAL_I8: _REAL_I8,
}  # fmt: skip
_SCALAR_WIDTH = {Element.F32: "f32", Element.I32: "i32", Element.U32: "u32", Element.BITS32: "u32"}


def layout_of(element: Element) -> Layout:
    """The WGSL of quads of `element`."""
    return _LAYOUTS[element]


def scalar_layout(element: Element) -> Layout:
    """The WGSL of a 32-bit element bound as single words, which alone may be stored one by one.

    Raises:  ValueError for elements that share words
    """
    scalar = _SCALAR_WIDTH.get(element)
    if scalar is None:
        raise ValueError(f"{element} shares words with its neighbours and cannot be stored one by one")
    return Layout(
        scalar, scalar, f"vec4<{scalar}>", "return $x[i];",
        f"return vec4<{scalar}>($x[4u * q], $x[4u * q + 1u], $x[4u * q + 2u], $x[4u * q + 3u]);",
        "$x[4u * q] = v.x; $x[4u * q + 1u] = v.y; $x[4u * q + 2u] = v.z; $x[4u * q + 3u] = v.w;",
    )  # fmt: skip
