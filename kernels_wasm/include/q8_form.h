// In what form a quantised dense product multiplies: bytes where the engine's dot products of bytes are exact, else
// int16.
#pragma once

#include "dots.h"

enum { COLUMNS = Q8_COLUMNS, HEAD = Q8_HEAD_BYTES, GROUP = 4 };  // HEAD, GROUP: bytes

// How the data of a dense product lie: `flip` and `zero` belong to the form that they are multiplied in.
typedef struct {
  int32_t size;  // bytes of a step of the sum: 1 or 2
  int32_t flip, zero;
} Form;

// The form of x in this engine, from the flip and the zero of its uint8 form.
INLINE Form form_of(int32_t x_flip, int32_t x_zero) {
  const int32_t dots = byte_dots(), turn = dots == BYTES_SIGNED ? 0x80 : 0;
  return (Form){dots == BYTES_INEXACT ? 2 : 1, x_flip ^ turn, x_zero - turn};
}

// Only what a build may choose is compiled.
#if !SIMD
#define IS_WIDE(form) ((void)(form), 0)
#elif !defined(__wasm_relaxed_simd__)
#define IS_WIDE(form) ((void)(form), 1)
#else
#define IS_WIDE(form) ((form)->size == 2)
#endif

INLINE int32_t groups_of(const Form *form, int32_t depth) { return (depth * form->size + GROUP - 1) / GROUP; }
INLINE int32_t panel_bytes(const Form *form, int32_t depth) { return HEAD + groups_of(form, depth) * GROUP * COLUMNS; }
