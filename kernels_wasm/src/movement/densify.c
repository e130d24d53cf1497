// Spreads TFLite's sparse storage of a constant over its dense shape; what is not stored is zero.
//
//   x      stored elements, in traversal order     read
//   table  int32 words: dense rank R, traversed rank L, block rank; shape[R]; traversal order[L]; block map;
//          then for each traversed dimension: 0, size  or  1, segments count, indices count, segments, indices
//   y      [size] dense, row-major                 written in full
//
// Needs: L <= SPARSITY_MAX_LEVELS; y overlaps nothing. A position outside y is left out. Units: none, one thread.
//  Source: SparsityParameters in TFLite's schema.fbs.
#include "simd.h"

// Levels are the traversed dimensions. A dense level has no segments.
typedef struct {
  const int32_t *segments, *indices;
  int32_t size, stride;
} Level;

static int32_t read_levels(const int32_t *table, Level *levels) {
  const int32_t rank = table[0], depth = table[1], blocks = table[2];
  const int32_t *shape = table + 3, *order = shape + rank, *block_map = order + depth, *word = block_map + blocks;
  for (int32_t i = 0; i < depth; i++) {
    const int32_t sparse = word[0] != SPARSITY_DENSE;
    levels[i].size = word[1];
    levels[i].segments = sparse ? word + 3 : 0;
    levels[i].indices = sparse ? word + 3 + word[1] : 0;
    word += sparse ? 3 + word[1] + word[2] : 2;
  }
  for (int32_t i = 0; i < depth; i++) {
    const int32_t axis = order[i] < rank ? order[i] : block_map[order[i] - rank];
    int32_t stride = 1;
    for (int32_t d = axis + 1; d < rank; d++) stride *= shape[d];
    // A step along a blocked axis skips a whole block.
    for (int32_t b = 0; order[i] < rank && b < blocks; b++) {
      if (block_map[b] != axis) continue;
      for (int32_t j = 0; j < depth; j++) stride *= order[j] == rank + b ? levels[j].size : 1;
    }
    levels[i].stride = stride;
  }
  return depth;
}

#define DENSIFY(NAME, TYPE)                                                                    \
  void NAME(const TYPE *restrict x, const int32_t *restrict table, TYPE *restrict y, int32_t size) { \
    Level levels[SPARSITY_MAX_LEVELS];                                                                      \
    int32_t next[SPARSITY_MAX_LEVELS], last[SPARSITY_MAX_LEVELS], base[SPARSITY_MAX_LEVELS], offset[SPARSITY_MAX_LEVELS];                          \
    const int32_t depth = read_levels(table, levels);                                          \
    for (int32_t i = 0; i < size; i++) y[i] = 0;                                               \
    int32_t at = 0, parent = 0, place = 0, entering = 1;                                       \
    while (at >= 0) {                                                                          \
      const Level *level = levels + at;                                                        \
      const int32_t *segments = level->segments;                                               \
      if (entering) {                                                                          \
        next[at] = segments ? segments[parent] : 0;                                            \
        last[at] = segments ? segments[parent + 1] : level->size;                              \
        base[at] = segments ? 0 : parent * level->size;                                        \
        offset[at] = place;                                                                    \
        entering = 0;                                                                          \
      }                                                                                        \
      if (next[at] >= last[at]) {                                                              \
        at--;                                                                                  \
        continue;                                                                              \
      }                                                                                        \
      const int32_t i = next[at]++;                                                            \
      parent = base[at] + i;                                                                   \
      place = offset[at] + (segments ? level->indices[i] : i) * level->stride;                 \
      if (at < depth - 1) {                                                                    \
        at++;                                                                                  \
        entering = 1;                                                                          \
      } else if (place >= 0 && place < size) {                                                 \
        y[place] = x[parent];                                                                  \
      }                                                                                        \
    }                                                                                          \
  }

DENSIFY(b8_densify, uint8_t)
DENSIFY(b16_densify, uint16_t)
DENSIFY(b32_densify, uint32_t)
DENSIFY(b64_densify, uint64_t)
