// block_product_row: y = x wT + bias + residual of one row x and weights that stay in a file's blocks; bound by memory.
//
//   x         [K], read in quads; unless weights are floats, each 32 of it become whole numbers times a scale
//   w         bytes [N, row] in blocks (_blocks.wgsl), as words
//   normed    x is first divided by the root of its mean square and multiplied by scale [K]: RMS norm on the way
//   gated     y = silu(x wT) * (x w1T): a workgroup takes two rows of each, else four
//   otherwise of several matrices the results lie side by side: that of w, then w1's from `first1` on, w2's from `first2`;
//   if `apart` in y, y1 and y2
//   quads     y is stored in quads: N % 4 == 0 of each matrix, without gates and place
//   place     its second number below 1: y is 0          bias, residual, y  [N]
//   Needs: K % 32 == 0, and first1 % 4 == first2 % 4 == 0.  An invocation takes every WG-th block of 32 of its workgroup's rows.
//   Dispatch: (ceil(N / ROWS)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
// of y
const ROWS: u32 = {{ rows }}u;
const READERS: u32 = WG;

alias acc_v = vec4<f32>;
{$ include "_sum.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}
{$ include "_blocks.wgsl" $}
{$ include "_row_block.wgsl" $}
{$ include "_matrices.wgsl" $}
{$ include "_added.wgsl" $}

$$ if gated
fn result(all: acc_v, i: u32, n: u32) -> f32 { return gated(all[i], all[i + ROWS]); }
$$ else
fn result(all: acc_v, i: u32, n: u32) -> f32 { return all[i] + added(0u, n); }
$$ endif

fn is_absent() -> bool {
    $$ if has_place
    return load_place(1u) < 1;
    $$ else
    return false;
    $$ endif
}

fn units() -> u32 { return (params.n + ROWS - 1u) / ROWS; }
fn compute(unit: u32, local: u32) {
    var factor = 1.0;
    $$ if normed
    var squares = 0.0;
    for (var q = local; q < params.k / 4u; q += WG) {
        let v = load4_x(q);
        squares += dot(v, v);
    }
    factor = 1.0 / sqrt(workgroup_reduce(acc_v(squares), local).x / f32(params.k) + params.epsilon);
    workgroupBarrier();
    $$ endif
    var sums = acc_v();
    let matrix = side_of(unit * ROWS);
    let first = unit * ROWS - first_of(matrix);
    for (var at = local; at < params.k / 32u; at += WG) {
        var x = row_block(0u, at, factor);
        for (var i = 0u; i < 4u; i++) {
            $$ if gated
            let row = min(first + i % ROWS, params.n - 1u) * params.row_bytes;
            let side = i / ROWS;
            $$ else
            let row = min(first + i, params.n - 1u - first_of(matrix)) * params.row_bytes;
            let side = matrix;
            $$ endif
            var low = vec4<f32>();
            var high = vec4<f32>();
            $$ if layout == "packed"
            for (var j = 0u; j < 4u; j++) {
                low += x.v[j] * unscaled(fetch_quad(row, at, j, side));
                high += x.v[j + 4u] * unscaled(fetch_quad(row, at, j + 4u, side));
            }
            sums[i] += scale_of(row, at, side) * dot(low + high, vec4<f32>(1.0));
            $$ elif floats
            for (var j = 0u; j < 4u; j++) {
                low += x.v[j] * weight_quad(row, at, j, side);
                high += x.v[j + 4u] * weight_quad(row, at, j + 4u, side);
            }
            sums[i] += dot(low + high, vec4<f32>(1.0));
            $$ else
            var b = open_block(row, at, side);
            for (var j = 0u; j < 4u; j++) {
                low += x.v[j] * unpacked(b.q[j]);
                high += x.v[j + 4u] * unpacked(b.q[j + 4u]);
            }
            let dots = vec2<f32>(dot(low, vec4<f32>(1.0)), dot(high, vec4<f32>(1.0)));
            sums[i] += x.step * (dot(dots, b.d) + dot(x.sums, b.m));
            $$ endif
        }
    }
    let all = workgroup_reduce(sums, local);
    $$ if quads
    if (local == 0u && unit * ROWS < params.n) {
        var v = vec4<f32>();
        for (var i = 0u; i < ROWS; i++) { v[i] = result(all, i, unit * ROWS + i); }
        store_quad(0u, unit * ROWS, v);
    }
    $$ else
    if (local < ROWS && unit * ROWS + local < params.n) {
        let n = unit * ROWS + local;
        let v = result(all, local, n);
        store_y(n, select(v, 0.0, is_absent()));
    }
    $$ endif
}
