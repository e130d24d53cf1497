// elementwise_binary: y = activation(op(a, b)), four consecutive elements of y an invocation.
//
//   a, b, y   shapes broadcast; y's dimensions are merged where both inputs allow
//   access    "flat": both as y; "row": one index computation a quad (inner size % 4 == 0); "each": one an element
//   Dispatch: (ceil(count / 4) / WG)

// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> a_words: array<vec4<f32>>;
alias a_t = f32;
alias a_v = vec4<f32>;
fn load_a(i: u32) -> f32 { return a_words[i >> 2u][i & 3u]; }
fn load4_a(q: u32) -> vec4<f32> { return a_words[q]; }
@group(0) @binding(1) var<storage, read> b_words: array<vec4<f32>>;
alias b_t = f32;
alias b_v = vec4<f32>;
fn load_b(i: u32) -> f32 { return b_words[i >> 2u][i & 3u]; }
fn load4_b(q: u32) -> vec4<f32> { return b_words[q]; }
@group(0) @binding(2) var<storage, read_write> y_words: array<vec4<f32>>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[q] = v; }
struct Params {
    size: array<vec4<u32>, 2>,
    a_stride: array<vec4<u32>, 2>,
    b_stride: array<vec4<u32>, 2>,
    count: u32,
}
@group(0) @binding(3) var<uniform> params: Params;
fn size_at(d: u32) -> u32 { return params.size[d >> 2u][d & 3u]; }
fn a_stride_at(d: u32) -> u32 { return params.a_stride[d >> 2u][d & 3u]; }
fn b_stride_at(d: u32) -> u32 { return params.b_stride[d >> 2u][d & 3u]; }
const WG: u32 = 64u;
const RANK: u32 = 2u;
const A_STEP: u32 = 1u;
const B_STEP: u32 = 1u;
// _binary: `binary(a, b)`, the formula of the operator's row, after the functions that it asks for.
//
//   a and b are four operands of one type, x_v; the result is four elements of y
//   Needs: bindings a, b and y.

alias x_v = a_v;

fn binary(a: x_v, b: x_v) -> y_v { return a + b; }
fn activate(v: y_v) -> y_v { return v; }
// _places: places(i) = where element i of y lies in a (x) and in b (y), whose shapes broadcast.
fn places(i: u32) -> vec2<u32> {
    var rest = i;
    var at = vec2<u32>(0u);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = rest % size_at(d);
        rest /= size_at(d);
        at += k * vec2<u32>(a_stride_at(d), b_stride_at(d));
    }
    return at;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    let at = places(4u * quad);
    var a = a_v(load_a(at.x));
    var b = b_v(load_b(at.y));
    if (A_STEP == 1u) { a = load4_a(at.x / 4u); }
    if (B_STEP == 1u) { b = load4_b(at.y / 4u); }
    store4_y(quad, activate(binary(a, b)));
}
