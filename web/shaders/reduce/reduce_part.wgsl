// reduce_part: one workgroup reduces a part of a line, or of four neighbouring lines; another pass reduces the parts.
//
//   x [O, D, I], lines along D, cut into P parts of PART elements, the last one shorter; y [O, P, I] of a 32-bit type
//   INNER: I > 1, and a workgroup takes four neighbouring lines; else it takes four neighbours of its line at a time
//   ADDED: the lines are those of x + z, of z like x (with INNER and QUADS)
//   QUADS: four neighbours lie in one quad of x (INNER: I % 4 == 0, else D % 4 == 0 and PART % 4 == 0)
//   Dispatch: (O * P * ceil(I / 4)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_reduce_together.wgsl" $}

const LANES = vec4<u32>(0u, 1u, 2u, 3u);

fn units() -> u32 { return params.count; }
fn compute(number: u32, local: u32) {
    let across_lines = (params.inner + 3u) / 4u;
    let quad = number % across_lines;
    let part = number / across_lines % params.parts;
    let outer = number / across_lines / params.parts;
    let begin = part * params.part;
    let end = min(begin + params.part, params.depth);
    var acc = start();
    $$ if inner
    let column = min(4u * quad + LANES, vec4<u32>(params.inner - 1u));
    for (var d = begin + local; d < end; d += WG) {
        let row = (outer * params.depth + d) * params.inner;
        $$ if added
        acc = step(acc, load4_x(row / 4u + quad) + load4_z(row / 4u + quad));
        $$ elif quads
        acc = step(acc, load4_x(row / 4u + quad));
        $$ else
        let at = row + column;
        acc = step(acc, x_v(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w)));
        $$ endif
    }
    let all = finish(workgroup_reduce(acc, local));
    if (local == 0u) {
        let row = (outer * params.parts + part) * params.inner;
        for (var lane = 0u; lane < 4u; lane++) {
            if (4u * quad + lane < params.inner) { store_y(row + 4u * quad + lane, all[lane]); }
        }
    }
    $$ else
    let line = outer * params.depth;
    for (var d = begin + 4u * local; d < end; d += 4u * WG) {
        $$ if quads
        acc = step(acc, load4_x((line + d) / 4u));
        $$ else
        let at = line + min(d + LANES, vec4<u32>(end - 1u));
        let next = step(acc, x_v(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w)));
        acc = keep(acc, next, d + LANES < vec4<u32>(end));
        $$ endif
    }
    let all = finish(across(workgroup_reduce(acc, local)));
    if (local == 0u) { store_y(outer * params.parts + part, all.x); }
    $$ endif
}
