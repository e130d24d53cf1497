// depthwise_pointwise: a depthwise convolution whose result stays in workgroup memory, and the 1x1 product of it.
//
//   x  [N, IH, IW, C]          read in quads, or one by one if C % 4 != 0
//   d  [KH, KW, C]             the depthwise weights, read alike        e, f  [C]   their bias and PReLU's slope, if any
//   w  [C, ceil(CO/4)]         vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]         written in quads, or one by one if CO % 4 != 0
//   A workgroup computes PIXELS pixels by QUADS quads of channels; SLICES invocations share a sum.
//   Padded taps count as 0.  The depthwise result is clamped if it has an activation; `curved` is its silu.
//   Dispatch: (ceil(pixels/PIXELS) * ceil(ceil(CO/4)/QUADS)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const PIXELS: u32 = {{ pixels }}u;
const QUADS: u32 = {{ quads }}u;
const SLICES: u32 = {{ slices }}u;
const C: u32 = {{ channels }}u;
const C4: u32 = (C + 3u) / 4u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

var<workgroup> middle: array<array<vec4<f32>, C4>, PIXELS>;
$$ if slices > 1
var<workgroup> partial: array<vec4<f32>, SLICES * PIXELS * QUADS>;
$$ endif

$$ if channel_quads
fn x_quad(pixel: u32, c4: u32) -> vec4<f32> { return load4_x(pixel * C4 + c4); }
fn d_quad(tap: u32, c4: u32) -> vec4<f32> { return load4_d(tap * C4 + c4); }
$$ else
fn x_quad(pixel: u32, c4: u32) -> vec4<f32> {
    var v = vec4<f32>();
    for (var lane = 0u; lane < min(4u, C - 4u * c4); lane++) { v[lane] = load_x(pixel * C + 4u * c4 + lane); }
    return v;
}
fn d_quad(tap: u32, c4: u32) -> vec4<f32> {
    var v = vec4<f32>();
    for (var lane = 0u; lane < min(4u, C - 4u * c4); lane++) { v[lane] = load_d(tap * C + 4u * c4 + lane); }
    return v;
}
$$ endif

fn depthwise(pixel: u32, c4: u32) -> vec4<f32> {
    let first = pixel / (params.oh * params.ow) * params.ih;
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var sum = vec4<f32>();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        let row_inside = iy >= 0 && iy < i32(params.ih);
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            let inside = row_inside && ix >= 0 && ix < i32(params.iw);
            let at = select(0u, (first + u32(iy)) * params.iw + u32(ix), inside);
            sum += select(vec4<f32>(), x_quad(at, c4), vec4<bool>(inside)) * d_quad(ky * KW + kx, c4);
        }
    }
    $$ if has_e
    sum += load4_e(c4);
    $$ endif
    $$ if clamped
    sum = clamp(sum, vec4<f32>(params.e_low), vec4<f32>(params.e_high));
    $$ endif
    $$ if sloped
    sum = select(sum * load4_f(c4), sum, sum >= vec4<f32>(0.0));
    $$ endif
    $$ if curved
    let falling = exp(-abs(sum)); // never overflows
    sum *= select(falling, vec4<f32>(1.0), sum >= vec4<f32>(0.0)) / (1.0 + falling);
    $$ endif
    return sum;
}

// Weights of four input channels behind the last would be another row's: their factors are made 0.
fn whole_lanes(v: vec4<f32>, c4: u32) -> vec4<f32> {
    $$ if channel_quads
    return v;
    $$ else
    return select(vec4<f32>(), v, vec4<u32>(4u * c4) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(C));
    $$ endif
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let blocks = (params.co4 + QUADS - 1u) / QUADS;
    let index = group.x + group.y * groups.x;
    let first = index / blocks * PIXELS;
    let first_quad = index % blocks * QUADS;
    for (var i = local; i < PIXELS * C4; i += WG) {
        let c4 = i % C4;
        middle[i / C4][c4] = whole_lanes(depthwise(min(first + i / C4, params.pixels - 1u), c4), c4);
    }
    workgroupBarrier();

    let quad = local % QUADS;
    let slice = local / QUADS % SLICES;
    let row = local / (QUADS * SLICES) * 4u;
    let c4 = min(first_quad + quad, params.co4 - 1u);
    var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
    for (var k = slice; k < C4; k += SLICES) {
        let at = min(4u * k + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(C - 1u)) * params.co4 + c4;
        let w0 = load4_w(at.x);
        let w1 = load4_w(at.y);
        let w2 = load4_w(at.z);
        let w3 = load4_w(at.w);
        let x0 = middle[row][k];
        let x1 = middle[row + 1u][k];
        let x2 = middle[row + 2u][k];
        let x3 = middle[row + 3u][k];
        s0 += x0.x * w0 + x0.y * w1 + x0.z * w2 + x0.w * w3;
        s1 += x1.x * w0 + x1.y * w1 + x1.z * w2 + x1.w * w3;
        s2 += x2.x * w0 + x2.y * w1 + x2.z * w2 + x2.w * w3;
        s3 += x3.x * w0 + x3.y * w1 + x3.z * w2 + x3.w * w3;
    }
    $$ if slices > 1
    let part = (slice * PIXELS + row) * QUADS + quad;
    partial[part] = s0;
    partial[part + QUADS] = s1;
    partial[part + 2u * QUADS] = s2;
    partial[part + 3u * QUADS] = s3;
    workgroupBarrier();
    for (var i = local; i < PIXELS * QUADS; i += WG) {
        var sum = vec4<f32>();
        for (var s = 0u; s < SLICES; s++) { sum += partial[s * PIXELS * QUADS + i]; }
        put(first + i / QUADS, first_quad + i % QUADS, sum);
    }
    $$ else
    put(first + row, first_quad + quad, s0);
    put(first + row + 1u, first_quad + quad, s1);
    put(first + row + 2u, first_quad + quad, s2);
    put(first + row + 3u, first_quad + quad, s3);
    $$ endif
}
