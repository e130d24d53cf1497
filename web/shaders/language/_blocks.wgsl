// _blocks: weights in the blocks of a GGUF file, opened 32 at a time in registers.
//
//   open_block(row, at, side): block `at` of the row of weights that begins at byte `row` of w (side 0), w1 or w2.
//   Weight 4j + i of it is unpacked(b.q[j])[i] * b.d[j / 4] + b.m[j / 4]; weight_quad(row, at, j, side) are four of them.
//   Needs: as many of w, w1 and w2 as `matrices` says, bound as single words.  Source: the block layouts of the GGUF format

// BYTES of a block: of 32 weights, of K types 256. MINIMUM 1: it has an offset of its own; FIFTH 1: weights have a fifth
// bit, which lies apart.
const BYTES: u32 = {{ block_bytes }}u;
const MINIMUM: u32 = {{ minimum }}u;
const FIFTH: u32 = {{ fifth }}u;

fn word(i: u32, side: u32) -> u32 {
    $$ for m in range(1, matrices)
    if (side == {{ m }}u) { return load_w{{ m }}(i); }
    $$ endfor
    return load_w(i);
}

// The four bytes from byte b on, which is even.
fn word_at(b: u32, side: u32) -> u32 {
    let low = word(b >> 2u, side);
    $$ if not aligned
    if ((b & 2u) == 2u) { return (low >> 16u) | (word((b >> 2u) + 1u, side) << 16u); }
    $$ endif
    return low;
}

fn byte_at(b: u32, side: u32) -> u32 { return (word(b >> 2u, side) >> (8u * (b & 3u))) & 255u; }

// The float16 at byte b; drivers may take those below the normal ones for zero, and scales are often so small.
fn half_at(b: u32, side: u32) -> f32 {
    let h = (word(b >> 2u, side) >> (8u * (b & 2u))) & 0xffffu;
    let tiny = f32(h & 1023u) * 5.9604644775390625e-8;
    return select(unpack2x16float(h).x, select(tiny, -tiny, h >= 0x8000u), (h & 0x7c00u) == 0u);
}

$$ if layout == "float32"
fn weight_quad(row: u32, at: u32, j: u32, side: u32) -> vec4<f32> {
    let p = (row >> 2u) + 32u * at + 4u * j;
    return bitcast<vec4<f32>>(vec4<u32>(word(p, side), word(p + 1u, side), word(p + 2u, side), word(p + 3u, side)));
}
$$ elif layout == "float16"
fn weight_quad(row: u32, at: u32, j: u32, side: u32) -> vec4<f32> {
    let p = (row >> 2u) + 16u * at + 2u * j;
    return vec4<f32>(unpack2x16float(word(p, side)), unpack2x16float(word(p + 1u, side)));
}
$$ elif layout == "bfloat16"
fn weight_quad(row: u32, at: u32, j: u32, side: u32) -> vec4<f32> {
    let p = (row >> 2u) + 16u * at + 2u * j;
    let low = word(p, side);
    let high = word(p + 1u, side);
    return bitcast<vec4<f32>>(vec4<u32>(low << 16u, low & 0xffff0000u, high << 16u, high & 0xffff0000u));
}
$$ else
// Packed numbers, and for each half of them their scale and what is added.
struct Block { q: array<u32, 8>, d: vec2<f32>, m: vec2<f32> }
$$ endif
$$ if layout == "small"
fn fifth_bits(bits: u32) -> u32 {
    return ((bits & 1u) << 4u) | ((bits & 2u) << 11u) | ((bits & 4u) << 18u) | ((bits & 8u) << 25u);
}

fn open_scales(row: u32, at: u32, side: u32) -> Block {
    let p = row + at * BYTES;
    let d = half_at(p, side);
    var m = d * select(-8.0, -16.0, FIFTH == 1u);
    if (MINIMUM == 1u) { m = half_at(p + 2u, side); }
    return Block(array<u32, 8>(), vec2<f32>(d), vec2<f32>(m));
}

fn packed_quad(row: u32, at: u32, j: u32, side: u32) -> u32 {
    let p = row + at * BYTES + 2u + 2u * MINIMUM;
    var bits = 0u;
    if (FIFTH == 1u) { bits = word_at(p, side) >> (4u * j); }
    return ((word_at(p + 4u * (FIFTH + j % 4u), side) >> (j & 4u)) & 0x0f0f0f0fu) | fifth_bits(bits);
}

fn open_block(row: u32, at: u32, side: u32) -> Block {
    var b = open_scales(row, at, side);
    let behind = row + at * BYTES + 2u + 2u * MINIMUM;
    var bits = 0u;
    if (FIFTH == 1u) { bits = word_at(behind, side); }
    for (var j = 0u; j < 4u; j++) {
        let v = word_at(behind + 4u * (FIFTH + j), side);
        b.q[j] = (v & 0x0f0f0f0fu) | fifth_bits(bits >> (4u * j));
        b.q[j + 4u] = ((v >> 4u) & 0x0f0f0f0fu) | fifth_bits(bits >> (16u + 4u * j));
    }
    return b;
}
$$ elif layout == "eight"
fn open_scales(row: u32, at: u32, side: u32) -> Block {
    return Block(array<u32, 8>(), vec2<f32>(half_at(row + at * BYTES, side)), vec2<f32>());
}

fn packed_quad(row: u32, at: u32, j: u32, side: u32) -> u32 { return word_at(row + at * BYTES + 2u + 4u * j, side); }
$$ elif layout == "k"
fn open_scales(row: u32, at: u32, side: u32) -> Block {
    let p = row + at / 8u * BYTES;
    let part = at % 8u;
    let own = byte_at(p + 4u + part, side);
    let next = byte_at(p + 8u + part, side);
    var scale = own & 63u;
    var minimum = next & 63u;
    if (part >= 4u) {
        scale = (next & 15u) | ((byte_at(p + part, side) >> 6u) << 4u);
        minimum = (next >> 4u) | ((own >> 6u) << 4u);
    }
    let d = half_at(p, side) * f32(scale);
    return Block(array<u32, 8>(), vec2<f32>(d), vec2<f32>(-half_at(p + 2u, side) * f32(minimum)));
}

fn packed_quad(row: u32, at: u32, j: u32, side: u32) -> u32 {
    let p = row + at / 8u * BYTES + 16u + 4u * j;
    let part = at % 8u;
    var q = (word_at(p + 32u * FIFTH + part / 2u * 32u, side) >> (4u * (part % 2u))) & 0x0f0f0f0fu;
    if (FIFTH == 1u) { q |= ((word_at(p, side) >> part) & 0x01010101u) << 4u; }
    return q;
}
$$ elif layout == "six"
fn open_scales(row: u32, at: u32, side: u32) -> Block {
    let p = row + at / 8u * BYTES;
    let scales = p + 192u + 2u * (at % 8u);
    let signed = vec2<i32>(vec2<u32>(byte_at(scales, side), byte_at(scales + 1u, side)) << vec2<u32>(24u)) >> vec2<u32>(24u);
    let d = half_at(p + 208u, side) * vec2<f32>(signed);
    return Block(array<u32, 8>(), d, -32.0 * d);
}

fn packed_quad(row: u32, at: u32, j: u32, side: u32) -> u32 {
    let p = row + at / 8u * BYTES + 4u * j;
    let half = at % 8u / 4u;
    let quarter = at % 4u;
    let low = word_at(p + 64u * half + quarter % 2u * 32u, side) >> (quarter / 2u * 4u);
    let high = word_at(p + 128u + 32u * half, side) >> (2u * quarter);
    return (low & 0x0f0f0f0fu) | ((high & 0x03030303u) << 4u);
}
$$ endif
$$ if layout in ("eight", "k", "six")

fn open_block(row: u32, at: u32, side: u32) -> Block {
    var b = open_scales(row, at, side);
    for (var j = 0u; j < 8u; j++) { b.q[j] = packed_quad(row, at, j, side); }
    return b;
}
$$ endif

// Four packed numbers of a block.
fn unpacked(q: u32) -> vec4<f32> {
    $$ if layout == "eight"
    return vec4<f32>(vec4<i32>(vec4<u32>(q) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
    $$ else
    return vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
    $$ endif
}
$$ if not floats

fn weight_quad(row: u32, at: u32, j: u32, side: u32) -> vec4<f32> {
    let b = open_scales(row, at, side);
    let upper = j >= 4u;
    return unpacked(packed_quad(row, at, j, side)) * select(b.d.x, b.d.y, upper) + select(b.m.x, b.m.y, upper);
}
$$ endif
