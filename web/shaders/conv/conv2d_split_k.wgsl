// conv2d_split_k: for small maps and long sums: eight invocations share each sum and meet in workgroup memory.
//
//   x  [N, IH, IW, CI]              read four channels at a time
//   gate  [CI]                      factors of the channels of x, if `gated`: then N = 1, and x is read as it lies
//   addend  [1, IH, IW, CI]         added to x times the factors, if `lifted`
//   w  [KH, KW, CI, ceil(CO/4)]     vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]              written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, one group.  Padded taps count as 0.
//   A workgroup computes four pixels by eight quads of channels: invocation = (slice of the sum, quad).
//   Dispatch: (ceil(pixels/4) * ceil(ceil(CO/4) / 8)) workgroups

{{ prelude }}
const WG: u32 = 64u;
const SLICES: u32 = 8u;
const QUADS: u32 = 8u;
const TILE: u32 = 4u;
const KW: u32 = {{ kw }}u;
const TAPS: u32 = {{ taps }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}
{$ include "_window.wgsl" $}

var<workgroup> partial: array<w_v, 256>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let blocks = (params.co4 + QUADS - 1u) / QUADS;
    let index = group.x + group.y * groups.x;
    // What lies outside repeats the last pixel or quad and is not stored: no barrier may stand behind a return.
    let first = index / blocks * TILE;
    let wanted = index % blocks * QUADS + local % QUADS;
    let c4 = min(wanted, params.co4 - 1u);
    let slice = local / QUADS;
    let last = params.pixels - 1u;
    let p0 = corner(min(first, last));
    let p1 = corner(min(first + 1u, last));
    let p2 = corner(min(first + 2u, last));
    let p3 = corner(min(first + 3u, last));
    var s0 = w_v(); var s1 = w_v(); var s2 = w_v(); var s3 = w_v();
    for (var i = slice; i < TAPS * params.ci4; i += SLICES) {
        let tap = i / params.ci4;
        let k = i - tap * params.ci4;
        let dy = i32(tap / KW * params.dilation_h);
        let dx = i32(tap % KW * params.dilation_w);
        let at = 4u * i * params.co4 + c4;
        let w0 = load4_w(at);
        let w1 = load4_w(at + params.co4);
        let w2 = load4_w(at + 2u * params.co4);
        let w3 = load4_w(at + 3u * params.co4);
        $$ if gated
        let gate = load4_gate(k);
        $$ endif
        $$ for i in range(4)
        $$ if lifted
        let x{{ i }} = input_at(p{{ i }}, dy, dx, k) * gate + load4_addend(min(first + {{ i }}u, last) * params.ci4 + k);
        $$ elif gated
        let x{{ i }} = input_at(p{{ i }}, dy, dx, k) * gate;
        $$ else
        let x{{ i }} = input_at(p{{ i }}, dy, dx, k);
        $$ endif
        $$ endfor
        s0 += x0.x * w0 + x0.y * w1 + x0.z * w2 + x0.w * w3;
        s1 += x1.x * w0 + x1.y * w1 + x1.z * w2 + x1.w * w3;
        s2 += x2.x * w0 + x2.y * w1 + x2.z * w2 + x2.w * w3;
        s3 += x3.x * w0 + x3.y * w1 + x3.z * w2 + x3.w * w3;
    }
    partial[local] = s0;
    partial[local + WG] = s1;
    partial[local + 2u * WG] = s2;
    partial[local + 3u * WG] = s3;
    workgroupBarrier();

    // Invocation (t, quad) of the first half adds the slices of pixel t.
    if (slice >= TILE) { return; }
    var sum = w_v();
    for (var s = 0u; s < SLICES; s++) { sum += partial[slice * WG + s * QUADS + local % QUADS]; }
    put(first + slice, wanted, sum);
}
