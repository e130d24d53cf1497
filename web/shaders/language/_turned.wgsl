// _turned: rotary embedding: elements of a head that turn with its position, in pairs.
//
//   pair_of(d): the two elements of a head that element d is made of; turned(left, right, d, position): element d of them.
//   TURNED of D elements turn; a pair is 2j and 2j+1 if ADJACENT, else j and j + TURNED/2.
//   Needs: speeds [TURNED/2] radians a position.

{$ include "_math.wgsl" $}
const D: u32 = {{ width }}u;
const TURNED: u32 = {{ turned }}u;
const ADJACENT: u32 = {{ adjacent }}u;
const PAIRS: u32 = TURNED / 2u;

fn pair_of(d: u32) -> vec2<u32> {
    if (d >= TURNED) { return vec2<u32>(d); }
    if (ADJACENT == 1u) { return vec2<u32>(d & ~1u, d | 1u); }
    return vec2<u32>(d % PAIRS, d % PAIRS + PAIRS);
}

fn turned(left: f32, right: f32, d: u32, position: i32) -> f32 {
    if (d >= TURNED) { return left; }
    var j = d % PAIRS;
    var second = d >= PAIRS;
    if (ADJACENT == 1u) {
        j = d / 2u;
        second = (d & 1u) == 1u;
    }
    let angle = vec4<f32>(f32(position) * load_speeds(j));
    let s = quarter_sin(angle, 0).x;
    let c = quarter_sin(angle, 1).x;
    return select(left * c - right * s, left * s + right * c, second);
}

// How many rows count: none where the cache does not hold their positions.
fn counted(first: i32, some: i32) -> u32 {
    let rows = min(some, i32(params.rows));
    return u32(select(rows, 0, first < 0 || rows < 1 || rows > i32(params.capacity) - first));
}
fn key_at(group: u32, position: u32, d: u32) -> u32 {
    return ((group * params.capacity + (position & ~7u)) * D) + 8u * d + (position & 7u);
}
