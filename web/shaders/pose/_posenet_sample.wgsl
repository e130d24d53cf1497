// _posenet_sample: where a point lies between the cells of a map of H x W: cell_of(p), the four cells and weights.
//
//   Needs: params h, w; points are (y, x) in cells.

struct Cell { top_left: u32, top_right: u32, bottom_left: u32, bottom_right: u32, weights: vec4<f32> }

fn clamp_point(p: vec2<f32>) -> vec2<f32> {
    return clamp(p, vec2<f32>(0.0), vec2<f32>(f32(params.h) - 1.0, f32(params.w) - 1.0));
}

// Cell numbers (y * W + x) around a point inside the map.
fn cell_of(p: vec2<f32>) -> Cell {
    let low = floor(p);
    let high = vec2<u32>(ceil(p));
    let f = p - low;
    let a = vec2<u32>(low);
    return Cell(
        a.x * params.w + a.y, a.x * params.w + high.y, high.x * params.w + a.y, high.x * params.w + high.y,
        vec4<f32>((1.0 - f.x) * (1.0 - f.y), (1.0 - f.x) * f.y, f.x * (1.0 - f.y), f.x * f.y),
    );
}
