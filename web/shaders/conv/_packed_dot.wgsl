// _packed_dot: products(x, w): one word of four int8 times each of four such words, summed within a word.
//
//   FLIP_X and FLIP_W turn words of uint8 into int8 (x ^ FLIP).  Needs: packed_4x8_integer_dot_product.

const FLIP_X: u32 = {{ flip_x }}u;
const FLIP_W: u32 = {{ flip_w }}u;
const ONES: u32 = 0x01010101u;

fn products(x: u32, w: vec4<u32>) -> vec4<i32> {
    return vec4<i32>(dot4I8Packed(x, w.x), dot4I8Packed(x, w.y), dot4I8Packed(x, w.z), dot4I8Packed(x, w.w));
}
