// In what form a quantised dense product multiplies: bytes where the engine's dot products of bytes are exact, bytes
// in pairs (q8_pairs.h) where its dot products of two are exact as long as 16 bits hold them and the weights are small
// enough, else int16.
#pragma once

#include "dots.h"

enum { COLUMNS = Q8_COLUMNS, HEAD = Q8_HEAD_BYTES, GROUP = 4 };  // HEAD, GROUP: bytes

// How the data of a dense product lie: `flip` and `zero` belong to the form that they are multiplied in.
typedef struct {
  int32_t size;  // bytes of a step of the sum: 1 or 2
  int32_t flip, zero;
  int32_t is_paired;
} Form;

// The form of x in this engine, from the flip and the zero of its uint8 form.
INLINE Form form_of(int32_t x_flip, int32_t x_zero, int32_t is_paired) {
  const int32_t dots = byte_dots(), turn = dots == BYTES_SIGNED ? 0x80 : 0;
  const int32_t inexact = dots == BYTES_INEXACT;
  return (Form){inexact && !is_paired ? 2 : 1, x_flip ^ turn, x_zero - turn, inexact && is_paired};
}

enum { LACKING = 64, NOT_PAIRED = -1 };  // LACKING: where a panel says what its weights lack, or its corrections

// The same, as the panels were packed for.
INLINE Form form_of_panels(int32_t x_flip, int32_t x_zero, const uint8_t *w) {
  return form_of(x_flip, x_zero, *(const int32_t *)(w + LACKING) != NOT_PAIRED);
}

// Only what a build may choose is compiled.
#if !SIMD
#define IS_WIDE(form) ((void)(form), 0)
#define IS_PAIRED(form) 0
#elif !defined(__wasm_relaxed_simd__)
#define IS_WIDE(form) ((void)(form), 1)
#define IS_PAIRED(form) 0
#else
#define IS_WIDE(form) ((form)->size == 2)
#define IS_PAIRED(form) ((form)->is_paired)
#endif

INLINE int32_t groups_of(const Form *form, int32_t depth) { return (depth * form->size + GROUP - 1) / GROUP; }
// Panels of pairs are as long as those of int16: what their weights leave free is for corrections.
INLINE int32_t panel_bytes(const Form *form, int32_t depth) {
  const int32_t size = form->is_paired ? 2 : form->size;
  return HEAD + (depth * size + GROUP - 1) / GROUP * GROUP * COLUMNS;
}
