// _blocks: weights in the blocks of a GGUF file, opened 32 at a time in registers.
//
//   open_block(row, at, side): block `at` of the row of weights that begins at byte `row` of w (side 0), w1 or w2.
//   Weight 4j + i of it is unpacked(b.q[j])[i] * b.d[j / 4] + b.m[j / 4]; weight_quad(row, at, j, side) are four of them.
//   fetch_quad(row, at, j, side) are the words that four weights lie in, opened(words, row, at, j) the weights: who fetches
//   early and opens late does not wait for the memory.
//   Needs: as many of w, w1 and w2 as `matrices` says, bound as single words.  Source: the block layouts of the GGUF format;
//   "packed" is our own, made at load of whole numbers and scales that a file has apart

// BYTES of a block: of 32 weights, of K types 256. MINIMUM 1: it has an offset of its own; FIFTH 1: weights have a fifth
// bit, which lies apart.
const BYTES: u32 = {{ block_bytes }}u;
const MINIMUM: u32 = {{ minimum }}u;
const FIFTH: u32 = {{ fifth }}u;
$$ if layout == "packed"
// Behind its scale, and its zero if MINIMUM is 1, a block has `block` whole numbers of `bits` bits.
const OPEN: u32 = {{ block // 32 }}u;
const BITS: u32 = {{ bits }}u;
const MIDDLE: f32 = f32(1u << (BITS - 1u)); // stands for 0 where blocks have no zero
$$ endif

fn word(i: u32, side: u32) -> u32 {
    $$ for m in range(1, matrices)
    if (side == {{ m }}u) { return load_w{{ m }}(i); }
    $$ endfor
    return load_w(i);
}

// The word with byte b, which is even, and the next one if the four bytes from b on reach into it.
fn words_at(b: u32, side: u32) -> vec2<u32> {
    $$ if aligned
    return vec2<u32>(word(b >> 2u, side), 0u);
    $$ else
    return vec2<u32>(word(b >> 2u, side), word((b >> 2u) + 1u, side));
    $$ endif
}

// The four bytes from byte b on, of the words that they lie in.
fn bytes_of(words: vec2<u32>, b: u32) -> u32 {
    $$ if aligned
    return words.x;
    $$ else
    return select(words.x, (words.x >> 16u) | (words.y << 16u), (b & 2u) == 2u);
    $$ endif
}

fn byte_of(word: u32, b: u32) -> u32 { return (word >> (8u * (b & 3u))) & 255u; }

// The float16 at byte b of a word; drivers may take those below the normal ones for zero, and scales are often so small.
fn half_of(word: u32, b: u32) -> f32 {
    let h = (word >> (8u * (b & 2u))) & 0xffffu;
    let tiny = f32(h & 1023u) * 5.9604644775390625e-8;
    return select(unpack2x16float(h).x, select(tiny, -tiny, h >= 0x8000u), (h & 0x7c00u) == 0u);
}

$$ if floats
alias Raw = vec4<u32>;
$$ else
// Words that scales and four packed numbers lie in.
struct Raw { scales: vec4<u32>, q: vec4<u32> }
// Packed numbers, and for each half of them their scale and what is added.
struct Block { q: array<u32, 8>, d: vec2<f32>, m: vec2<f32> }
$$ endif
$$ if layout == "float32"
fn fetch_quad(row: u32, at: u32, j: u32, side: u32) -> Raw {
    let p = (row >> 2u) + 32u * at + 4u * j;
    return Raw(word(p, side), word(p + 1u, side), word(p + 2u, side), word(p + 3u, side));
}
fn opened(raw: Raw, row: u32, at: u32, j: u32) -> vec4<f32> { return bitcast<vec4<f32>>(raw); }
$$ elif layout == "float16"
fn fetch_quad(row: u32, at: u32, j: u32, side: u32) -> Raw {
    let p = (row >> 2u) + 16u * at + 2u * j;
    return Raw(word(p, side), word(p + 1u, side), 0u, 0u);
}
fn opened(raw: Raw, row: u32, at: u32, j: u32) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(raw.x), unpack2x16float(raw.y));
}
$$ elif layout == "packed"
fn block_word(row: u32, at: u32) -> u32 { return (row + at / OPEN * BYTES) >> 2u; }
fn scale_of(row: u32, at: u32, side: u32) -> f32 { return bitcast<f32>(word(block_word(row, at), side)); }
fn fetch_quad(row: u32, at: u32, j: u32, side: u32) -> Raw {
    let p = block_word(row, at);
    var zero = bitcast<u32>(MIDDLE);
    if (MINIMUM == 1u) { zero = word(p + 1u, side); }
    let q = word(p + 1u + MINIMUM + at % OPEN * BITS + j * BITS / 8u, side);
    return Raw(word(p, side), zero, q >> ((4u * BITS * j) & 31u), 0u);
}
// Four weights without their scale.
fn unscaled(raw: Raw) -> vec4<f32> {
    let q = (vec4<u32>(raw.z) >> (BITS * vec4<u32>(0u, 1u, 2u, 3u))) & vec4<u32>((1u << BITS) - 1u);
    return vec4<f32>(q) - bitcast<f32>(raw.y);
}
fn opened(raw: Raw, row: u32, at: u32, j: u32) -> vec4<f32> { return unscaled(raw) * bitcast<f32>(raw.x); }
$$ elif layout == "bfloat16"
fn fetch_quad(row: u32, at: u32, j: u32, side: u32) -> Raw {
    let p = (row >> 2u) + 16u * at + 2u * j;
    return Raw(word(p, side), word(p + 1u, side), 0u, 0u);
}
fn opened(raw: Raw, row: u32, at: u32, j: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>((raw.xxyy << vec4<u32>(16u, 0u, 16u, 0u)) & vec4<u32>(0xffff0000u));
}
$$ elif layout == "small"
fn fifth_bits(bits: u32) -> u32 {
    return ((bits & 1u) << 4u) | ((bits & 2u) << 11u) | ((bits & 4u) << 18u) | ((bits & 8u) << 25u);
}

fn fetch_scales(row: u32, at: u32, side: u32) -> vec4<u32> {
    return vec4<u32>(word((row + at * BYTES) >> 2u, side), 0u, 0u, 0u);
}

fn scales_of(words: vec4<u32>, row: u32, at: u32) -> Block {
    let d = half_of(words.x, row + at * BYTES);
    var m = d * select(-8.0, -16.0, FIFTH == 1u);
    if (MINIMUM == 1u) { m = half_of(words.x, row + at * BYTES + 2u); } // blocks with an offset begin with a word
    return Block(array<u32, 8>(), vec2<f32>(d), vec2<f32>(m));
}

fn fetch_packed(row: u32, at: u32, j: u32, side: u32) -> vec4<u32> {
    let p = row + at * BYTES + 2u + 2u * MINIMUM;
    var bits = vec2<u32>();
    if (FIFTH == 1u) { bits = words_at(p, side); }
    return vec4<u32>(words_at(p + 4u * (FIFTH + j % 4u), side), bits);
}

fn packed_of(words: vec4<u32>, row: u32, at: u32, j: u32) -> u32 {
    let p = row + at * BYTES + 2u + 2u * MINIMUM; // what lies four bytes behind begins at the same half of a word
    let bits = select(0u, bytes_of(words.zw, p) >> (4u * j), FIFTH == 1u);
    return ((bytes_of(words.xy, p) >> (j & 4u)) & 0x0f0f0f0fu) | fifth_bits(bits);
}

fn open_block(row: u32, at: u32, side: u32) -> Block {
    var b = scales_of(fetch_scales(row, at, side), row, at);
    for (var j = 0u; j < 4u; j++) {
        let words = fetch_packed(row, at, j, side);
        b.q[j] = packed_of(words, row, at, j);
        b.q[j + 4u] = packed_of(words, row, at, j + 4u);
    }
    return b;
}
$$ elif layout == "eight"
fn fetch_scales(row: u32, at: u32, side: u32) -> vec4<u32> {
    return vec4<u32>(word((row + at * BYTES) >> 2u, side), 0u, 0u, 0u);
}

fn scales_of(words: vec4<u32>, row: u32, at: u32) -> Block {
    return Block(array<u32, 8>(), vec2<f32>(half_of(words.x, row + at * BYTES)), vec2<f32>());
}

fn fetch_packed(row: u32, at: u32, j: u32, side: u32) -> vec4<u32> {
    return vec4<u32>(words_at(row + at * BYTES + 2u + 4u * j, side), 0u, 0u);
}

fn packed_of(words: vec4<u32>, row: u32, at: u32, j: u32) -> u32 { return bytes_of(words.xy, row + at * BYTES + 2u); }
$$ elif layout == "k"
fn fetch_scales(row: u32, at: u32, side: u32) -> vec4<u32> {
    let p = row + at / 8u * BYTES;
    let part = at % 8u;
    var before = 0u;
    if (part >= 4u) { before = word((p + part) >> 2u, side); }
    return vec4<u32>(word(p >> 2u, side), word((p + 4u + part) >> 2u, side), word((p + 8u + part) >> 2u, side), before);
}

fn scales_of(words: vec4<u32>, row: u32, at: u32) -> Block {
    let part = at % 8u;
    let own = byte_of(words.y, part);
    let next = byte_of(words.z, part);
    var scale = own & 63u;
    var minimum = next & 63u;
    if (part >= 4u) {
        scale = (next & 15u) | ((byte_of(words.w, part) >> 6u) << 4u);
        minimum = (next >> 4u) | ((own >> 6u) << 4u);
    }
    let d = half_of(words.x, 0u) * f32(scale);
    return Block(array<u32, 8>(), vec2<f32>(d), vec2<f32>(-half_of(words.x, 2u) * f32(minimum)));
}

fn fetch_packed(row: u32, at: u32, j: u32, side: u32) -> vec4<u32> {
    let p = row + at / 8u * BYTES + 16u + 4u * j;
    var fifth = 0u;
    if (FIFTH == 1u) { fifth = word(p >> 2u, side); }
    return vec4<u32>(word((p + 32u * FIFTH + at % 8u / 2u * 32u) >> 2u, side), fifth, 0u, 0u);
}

fn packed_of(words: vec4<u32>, row: u32, at: u32, j: u32) -> u32 {
    let part = at % 8u;
    return ((words.x >> (4u * (part % 2u))) & 0x0f0f0f0fu) | (((words.y >> part) & 0x01010101u) << 4u);
}
$$ elif layout == "six"
fn fetch_scales(row: u32, at: u32, side: u32) -> vec4<u32> {
    let p = row + at / 8u * BYTES;
    return vec4<u32>(word((p + 208u) >> 2u, side), word((p + 192u + 2u * (at % 8u)) >> 2u, side), 0u, 0u);
}

fn scales_of(words: vec4<u32>, row: u32, at: u32) -> Block {
    let p = row + at / 8u * BYTES;
    let b = p + 2u * (at % 8u);
    let signed = vec2<i32>(vec2<u32>(byte_of(words.y, b), byte_of(words.y, b + 1u)) << vec2<u32>(24u)) >> vec2<u32>(24u);
    let d = half_of(words.x, p) * vec2<f32>(signed);
    return Block(array<u32, 8>(), d, -32.0 * d);
}

fn fetch_packed(row: u32, at: u32, j: u32, side: u32) -> vec4<u32> {
    let p = row + at / 8u * BYTES + 4u * j;
    let half = at % 8u / 4u;
    return vec4<u32>(words_at(p + 64u * half + at % 2u * 32u, side), words_at(p + 128u + 32u * half, side));
}

fn packed_of(words: vec4<u32>, row: u32, at: u32, j: u32) -> u32 {
    let p = row + at / 8u * BYTES;
    let quarter = at % 4u;
    let low = bytes_of(words.xy, p) >> (quarter / 2u * 4u);
    return (low & 0x0f0f0f0fu) | (((bytes_of(words.zw, p) >> (2u * quarter)) & 0x03030303u) << 4u);
}
$$ endif
$$ if layout in ("eight", "k", "six")

fn open_block(row: u32, at: u32, side: u32) -> Block {
    var b = scales_of(fetch_scales(row, at, side), row, at);
    for (var j = 0u; j < 8u; j++) { b.q[j] = packed_of(fetch_packed(row, at, j, side), row, at, j); }
    return b;
}
$$ endif
$$ if layout == "eight"

// Four packed numbers of a block.
fn unpacked(q: u32) -> vec4<f32> {
    return vec4<f32>(vec4<i32>(vec4<u32>(q) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
$$ elif not floats

fn unpacked(q: u32) -> vec4<f32> { return vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)); }
$$ endif
$$ if not floats

fn fetch_quad(row: u32, at: u32, j: u32, side: u32) -> Raw {
    return Raw(fetch_scales(row, at, side), fetch_packed(row, at, j, side));
}

fn opened(raw: Raw, row: u32, at: u32, j: u32) -> vec4<f32> {
    let b = scales_of(raw.scales, row, at);
    let upper = j >= 4u;
    return unpacked(packed_of(raw.q, row, at, j)) * select(b.d.x, b.d.y, upper) + select(b.m.x, b.m.y, upper);
}
$$ endif

fn weight_quad(row: u32, at: u32, j: u32, side: u32) -> vec4<f32> {
    return opened(fetch_quad(row, at, j, side), row, at, j);
}
