// described: a kernel of expr/kernel.py; `formula` gives an element of y, or four that lie together in it and in x.
//
//   y [count]; four consecutive elements an invocation
//   Dispatch: (ceil(count / 4) / WG)

// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<u32>;
alias x_t = i32;
alias x_v = vec4<i32>;
fn load_x(i: u32) -> i32 { return i32((x_words[i >> 2u] >> (8u * (i & 3u))) & 255u); }
fn load4_x(q: u32) -> vec4<i32> { return vec4<i32>((vec4<u32>(x_words[q]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)); }
@group(0) @binding(1) var<storage, read_write> y_words: array<u32>;
alias y_t = i32;
alias y_v = vec4<i32>;
fn store4_y(q: u32, v: vec4<i32>) { let b = vec4<u32>(v) & vec4<u32>(255u); y_words[q] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u); }
struct Params {
    count: u32,
    c: i32,
    high: i32,
    ih: i32,
    iw: i32,
    left: i32,
    low: i32,
    oh: i32,
    ow: i32,
    stride_h: i32,
    stride_w: i32,
    top: i32,
}
@group(0) @binding(2) var<uniform> params: Params;
const WG: u32 = 64u;

fn four(at: u32) -> y_v {
    let i = i32(at % u32(params.c));
    let at_ox = at / u32(params.c);
    let ox = i32(at_ox % u32(params.ow));
    let at_oy = at_ox / u32(params.ow);
    let oy = i32(at_oy % u32(params.oh));
    let at_n = at_oy / u32(params.oh);
    let n = i32(at_n);
    var v0 = y_v(y_t(0));
    for (var ky = 0; ky < 3; ky++) {
        let v1 = oy * params.stride_h - params.top;
        let v2 = v1 + ky * 1;
        if ((v2 >= 0) & (params.ih > v2)) {
            for (var kx = 0; kx < 3; kx++) {
                let v3 = ox * params.stride_w - params.left;
                let v4 = v3 + kx * 1;
                if ((v4 >= 0) & (params.iw > v4)) {
                    v0 += load4_x(u32(((n * params.ih + v2) * params.iw + v4) * params.c + i));
                }
            }
        }
    }
    let v5 = oy * params.stride_h - params.top;
    let v6 = ox * params.stride_w - params.left;
    let v7 = (min(params.ih - v5, 3) - max(-v5, 0)) * (min(params.iw - v6, 3) - max(-v6, 0));
    return y_v(clamp(((v0 + sign(v0) * (v7 / 2)) / v7), vec4(params.low), vec4(params.high)));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    store4_y(quad, four(quad));
}
