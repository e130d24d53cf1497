// transform_landmarks: (x, y) of every landmark by the matrix's first two rows; a third number passes unchanged.
//
//   x, y [count] float32, D numbers a landmark; matrix [4, 4], its translation multiplied by `scale`
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    let axis = i % params.numbers;
    let first = i - axis;
    if (axis > 1u) { return load_x(i); }
    let turned = load_x(first) * load_matrix(4u * axis) + load_x(first + 1u) * load_matrix(4u * axis + 1u);
    return turned + load_matrix(4u * axis + 3u) * params.scale;
}

{$ include "_each_element.wgsl" $}
