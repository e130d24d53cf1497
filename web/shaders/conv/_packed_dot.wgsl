// _packed_dot: products of words of four int8. FLIP_X and FLIP_W turn words of uint8 into them (x ^ 0x80).

const FLIP_X: u32 = {{ flip_x }}u;
const FLIP_W: u32 = {{ flip_w }}u;
const ONES: u32 = 0x01010101u;

fn products(x: u32, w: vec4<u32>) -> vec4<i32> {
    return vec4<i32>(dot4I8Packed(x, w.x), dot4I8Packed(x, w.y), dot4I8Packed(x, w.z), dot4I8Packed(x, w.w));
}
