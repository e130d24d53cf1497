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
  int32_t paired;  // whether bytes are multiplied in pairs
  int32_t crossed;   // whether groups come in twos (q8_tile.h)
} Form;

// The form of x in this engine, from the flip and the zero of its uint8 form; `paired` counts in engines that pair.
INLINE Form form_of(int32_t x_flip, int32_t x_zero, int32_t paired) {
  const int32_t dots = byte_dots(), turn = dots == BYTES_SIGNED ? 0x80 : 0;
  const int32_t inexact = dots == BYTES_INEXACT;
  const int32_t wide = inexact && !paired;
  return (Form){1 + wide, x_flip ^ turn, x_zero - turn, inexact && paired, wide};
}

// LACKING: where a panel says what its weights lack, or in pairs what q8_pairs.h has of them, its bytes second.
enum { LACKING = 64, NOT_PAIRED = -1 };

// The same, as the panels were packed for.
INLINE Form form_of_panels(int32_t x_flip, int32_t x_zero, const uint8_t *w) {
  const int32_t *lacking = (const int32_t *)(w + LACKING);
  return form_of(x_flip, x_zero, *lacking != NOT_PAIRED);
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
#define IS_PAIRED(form) ((form)->paired)
#endif

INLINE int32_t groups_of(const Form *form, int32_t depth) {
  const int32_t groups = (depth * form->size + GROUP - 1) / GROUP;
  return groups + (groups & form->crossed);
}
INLINE int32_t panel_bytes(const Form *form, int32_t depth) {  // but in pairs, where panels differ
  return HEAD + groups_of(form, depth) * GROUP * COLUMNS;
}
