// resize_bilinear_vec4: one output pixel by four channels an invocation, between four input pixels.
//
//   x  [N, IH, IW, C]  read in quads      y  [N, OH, OW, C]  written in quads
//   Needs: C % 4 == 0.
//   Output pixel o samples (o + offset) * scale - offset; offset is 0.5 with half pixel centers, else 0.
//   Dispatch: (N*OH*OW*C/4 / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (4u * index >= params.count) { return; }
    let c4s = params.c / 4u;
    let c4 = index % c4s;
    let ox = (index / c4s) % params.ow;
    let oy = (index / (c4s * params.ow)) % params.oh;
    let n = index / (c4s * params.ow * params.oh);
    let sy = (f32(oy) + params.offset) * params.scale_h - params.offset;
    let sx = (f32(ox) + params.offset) * params.scale_w - params.offset;
    let y0 = min(u32(max(floor(sy), 0.0)), params.ih - 1u);
    let x0 = min(u32(max(floor(sx), 0.0)), params.iw - 1u);
    let fy = clamp(sy - f32(y0), 0.0, 1.0);
    let fx = clamp(sx - f32(x0), 0.0, 1.0);
    let row0 = (n * params.ih + y0) * params.iw;
    let row1 = (n * params.ih + min(y0 + 1u, params.ih - 1u)) * params.iw;
    let x1 = min(x0 + 1u, params.iw - 1u);
    let above = load4_x((row0 + x0) * c4s + c4) * (1.0 - fx) + load4_x((row0 + x1) * c4s + c4) * fx;
    let below = load4_x((row1 + x0) * c4s + c4) * (1.0 - fx) + load4_x((row1 + x1) * c4s + c4) * fx;
    store4_y(index, above * (1.0 - fy) + below * fy);
}
