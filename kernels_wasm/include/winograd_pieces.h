// What a call of a Winograd kernel computes: blocks of tiles and, where these are too few for threads, slices of each
// block's panels. A unit is one of `parts` equal runs of all slices, block by block.
#pragma once

#include "simd.h"

typedef struct {
  int32_t block, first, behind;  // the block's panels [first, behind)
  int32_t next;                  // the slice that comes then
} Piece;

INLINE int32_t first_slice(int32_t unit, int32_t all, int32_t parts) { return (int32_t)((int64_t)unit * all / parts); }

// Of the slices [at, last) those of one block, which has `slices`. Needs: slices <= panels
INLINE Piece piece_at(int32_t at, int32_t last, int32_t slices, int32_t panels) {
  const int32_t block = at / slices, from = at - block * slices, rest = last - at;
  const int32_t to = from + rest < slices ? from + rest : slices;
  return (Piece){block, from * panels / slices, to * panels / slices, at + to - from};
}

// Tiles of a block, of all but the last one: whole rows of products.
INLINE int32_t tiles_of_block(int32_t tiles, int32_t blocks, const int32_t rows) {
  return ((tiles + blocks - 1) / blocks + rows - 1) / rows * rows;
}
