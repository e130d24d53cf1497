// softmax_workgroup: one workgroup computes one line together, for lines much longer than a workgroup.
//
//   x, y [O, D, I] float32, lines along D
//   Dispatch: (O*I) workgroups

// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<vec4<f32>>;
alias x_t = f32;
alias x_v = vec4<f32>;
fn load_x(i: u32) -> f32 { return x_words[i >> 2u][i & 3u]; }
fn load4_x(q: u32) -> vec4<f32> { return x_words[q]; }
@group(0) @binding(1) var<storage, read_write> y_words: array<f32>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[4u * q] = v.x; y_words[4u * q + 1u] = v.y; y_words[4u * q + 2u] = v.z; y_words[4u * q + 3u] = v.w; }
fn store_y(i: u32, v: f32) { y_words[i] = v; }
struct Params {
    lines: u32,
    depth: u32,
    inner: u32,
    beta: f32,
}
@group(0) @binding(2) var<uniform> params: Params;
const WG: u32 = 64u;

var<workgroup> shared_values: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Spare workgroups of a folded dispatch repeat the last line: no barrier may stand behind a return.
    let line = min(group.x + group.y * groups.x, params.lines - 1u);
    let base = line / params.inner * params.depth * params.inner + line % params.inner;

    var top = -3.4028234663852886e38;
    for (var d = local; d < params.depth; d += WG) { top = max(top, params.beta * load_x(base + d * params.inner)); }
    shared_values[local] = top;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        if (local < half) { shared_values[local] = max(shared_values[local], shared_values[local + half]); }
        workgroupBarrier();
    }
    top = shared_values[0];
    workgroupBarrier();

    var sum = 0.0;
    for (var d = local; d < params.depth; d += WG) { sum += exp(params.beta * load_x(base + d * params.inner) - top); }
    shared_values[local] = sum;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        if (local < half) { shared_values[local] += shared_values[local + half]; }
        workgroupBarrier();
    }
    sum = shared_values[0];

    for (var d = local; d < params.depth; d += WG) {
        let shifted = params.beta * load_x(base + d * params.inner) - top;
        store_y(base + d * params.inner, exp(shifted) / sum);
    }
}
