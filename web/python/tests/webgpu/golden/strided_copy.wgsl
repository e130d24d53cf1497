// strided_copy: y[target_offset + sum(index * target_stride)] = x[source_offset + sum(index * source_stride)]
// for every index of a box of at most 8 dimensions; the elements of y outside the box hold `fill` or stay.
//
//   x, y  any shape, moved bit for bit; four consecutive elements of y an invocation
//   Needs: dimensions ordered by falling target stride, each at least size * stride of the next.
//   Dispatch: (quads of y from first_quad on / WG)

// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<vec4<u32>>;
alias x_t = u32;
alias x_v = vec4<u32>;
fn load_x(i: u32) -> u32 { return x_words[i >> 2u][i & 3u]; }
fn load4_x(q: u32) -> vec4<u32> { return x_words[q]; }
@group(0) @binding(1) var<storage, read_write> y_words: array<vec4<u32>>;
alias y_t = u32;
alias y_v = vec4<u32>;
fn load_y(i: u32) -> u32 { return y_words[i >> 2u][i & 3u]; }
fn load4_y(q: u32) -> vec4<u32> { return y_words[q]; }
fn store4_y(q: u32, v: vec4<u32>) { y_words[q] = v; }
struct Params {
    size: array<vec4<u32>, 2>,
    target_stride: array<vec4<u32>, 2>,
    source_stride: array<vec4<i32>, 2>,
    quads: u32,
    first_quad: u32,
    target_offset: u32,
    fill: u32,
    fill_high: u32,
    source_offset: i32,
}
@group(0) @binding(2) var<uniform> params: Params;
fn size_at(d: u32) -> u32 { return params.size[d >> 2u][d & 3u]; }
fn target_stride_at(d: u32) -> u32 { return params.target_stride[d >> 2u][d & 3u]; }
fn source_stride_at(d: u32) -> i32 { return params.source_stride[d >> 2u][d & 3u]; }
const WG: u32 = 64u;
const RANK: u32 = 1u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.quads) { return; }
    let quad = params.first_quad + index;
    var v = load4_y(quad);
    for (var lane = 0u; lane < 4u; lane++) {
        let i = 4u * quad + lane;
        var inside = i >= params.target_offset;
        var rest = i - min(i, params.target_offset);
        var at = params.source_offset;
        for (var d = 0u; d < RANK; d++) {
            let step = target_stride_at(d);
            let k = rest / step;
            rest -= k * step;
            inside = inside && k < size_at(d);
            at += i32(k) * source_stride_at(d);
        }
        if (inside && rest == 0u) {
            v[lane] = load_x(u32(at));
        } else {
            continue;
        }
    }
    store4_y(quad, v);
}
