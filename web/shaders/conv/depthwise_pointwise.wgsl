// depthwise_pointwise: a depthwise convolution whose result stays in workgroup memory, and the 1x1 product of it.
//
//   x  [N, IH, IW, C]          read in quads, or one by one if C % 4 != 0
//   d  [KH, KW, C]             the depthwise weights, read alike        e, f  [C]   their bias and PReLU's slope, if any
//   w  [C, ceil(CO/4)]         vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]         written in quads, or one by one if CO % 4 != 0
//   A workgroup computes `tile` pixels by `quads` quads of channels; `slices` invocations share a sum where SPLIT.
//   Padded taps count as 0.  The depthwise result is clamped if it has an activation; `curved` is its silu.
//   Needs: tile / 4 * quads * slices <= WG, tile * C/4 and, where SPLIT, 4 times that product <= CAPACITY.
//   Dispatch: (ceil(pixels/tile) * ceil(ceil(CO/4)/quads)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const CAPACITY: u32 = {{ capacity }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

// A workgroup's memory: the depthwise results [tile, C/4], then the parts of sums [slices, tile, quads].
var<workgroup> middle: array<vec4<f32>, CAPACITY>;

fn channel_quads() -> u32 { return (params.channels + 3u) / 4u; }

$$ if channel_quads
fn x_quad(pixel: u32, c4: u32) -> vec4<f32> { return load4_x(pixel * channel_quads() + c4); }
fn d_quad(tap: u32, c4: u32) -> vec4<f32> { return load4_d(tap * channel_quads() + c4); }
$$ else
fn x_quad(pixel: u32, c4: u32) -> vec4<f32> {
    var v = vec4<f32>();
    let at = pixel * params.channels + 4u * c4;
    for (var lane = 0u; lane < min(4u, params.channels - 4u * c4); lane++) { v[lane] = load_x(at + lane); }
    return v;
}
fn d_quad(tap: u32, c4: u32) -> vec4<f32> {
    var v = vec4<f32>();
    let at = tap * params.channels + 4u * c4;
    for (var lane = 0u; lane < min(4u, params.channels - 4u * c4); lane++) { v[lane] = load_d(at + lane); }
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
    return select(vec4<f32>(), v, vec4<u32>(4u * c4) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(params.channels));
    $$ endif
}

// The weights of four input channels for four output channels each.
struct Weights { w0: w_v, w1: w_v, w2: w_v, w3: w_v }
fn weights_at(k: u32, c4: u32) -> Weights {
    let at = min(4u * k + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.channels - 1u)) * params.co4 + c4;
    return Weights(load4_w(at.x), load4_w(at.y), load4_w(at.z), load4_w(at.w));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = params.tile;
    let quads = params.quads;
    let slices = params.slices;
    let depth = channel_quads();
    let blocks = (params.co4 + quads - 1u) / quads;
    let index = group.x + group.y * groups.x;
    let first = index / blocks * tile;
    let first_quad = index % blocks * quads;
    for (var i = local; i < tile * depth; i += WG) {
        let c4 = i % depth;
        middle[i] = whole_lanes(depthwise(min(first + i / depth, params.pixels - 1u), c4), c4);
    }
    workgroupBarrier();

    let quad = local % quads;
    let slice = local / quads % slices;
    let row = local / (quads * slices) * 4u; // from `tile` on this invocation has no sum
    let c4 = min(first_quad + quad, params.co4 - 1u);
    var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
    if (row < tile) {
        let at = row * depth;
        var next = weights_at(slice, c4);
        for (var k = slice; k < depth; k += slices) {
            let w = next;
            if (k + slices < depth) { next = weights_at(k + slices, c4); } // on their way meanwhile
            let x0 = middle[at + k];
            let x1 = middle[at + depth + k];
            let x2 = middle[at + 2u * depth + k];
            let x3 = middle[at + 3u * depth + k];
            s0 += x0.x * w.w0 + x0.y * w.w1 + x0.z * w.w2 + x0.w * w.w3;
            s1 += x1.x * w.w0 + x1.y * w.w1 + x1.z * w.w2 + x1.w * w.w3;
            s2 += x2.x * w.w0 + x2.y * w.w1 + x2.z * w.w2 + x2.w * w.w3;
            s3 += x3.x * w.w0 + x3.y * w.w1 + x3.z * w.w2 + x3.w * w.w3;
        }
    }
    $$ if split
    workgroupBarrier();
    if (row < tile) {
        let part = (slice * tile + row) * quads + quad;
        middle[part] = s0;
        middle[part + quads] = s1;
        middle[part + 2u * quads] = s2;
        middle[part + 3u * quads] = s3;
    }
    workgroupBarrier();
    for (var i = local; i < tile * quads; i += WG) {
        var sum = vec4<f32>();
        for (var s = 0u; s < slices; s++) { sum += middle[s * tile * quads + i]; }
        put(first + i / quads, first_quad + i % quads, sum);
    }
    $$ else
    if (row < tile) {
        put(first + row, first_quad + quad, s0);
        put(first + row + 1u, first_quad + quad, s1);
        put(first + row + 2u, first_quad + quad, s2);
        put(first + row + 3u, first_quad + quad, s3);
    }
    $$ endif
}
