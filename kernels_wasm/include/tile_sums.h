// The sums of a register tile, MR rows by NV vectors of NR columns, and where they are stored.
// Included once per file, after MR and NR are defined, and PANEL where a tile reads several panels side by side.
#pragma once

#include "epilogue.h"

#if !SIMD && !(MR == 4 && NR == 8)  // four scalars a vector: only the tile that this build chooses is worth its size
#undef UNROLL
#define UNROLL
#endif

#define DEEP (NR == 1 || NR == 3)  // lanes along the depth: a vector of sums for each column
#define NV (DEEP ? NR : (NR + 3) / 4)  // vectors of a row of sums

// Weights lie in panels of PANEL columns, whatever tiles read them: a weight is packed once.
#ifndef PANEL
#define PANEL NR
#endif
#define PANELS (NR / PANEL)  // that a tile reads

#if PANELS == 1
typedef const float *Columns;  // a row of weights of a tile
#else
typedef struct {
  const float *of[PANELS];
} Columns;
#endif

#define EACH_SUM(STATEMENT)                  \
  UNROLL for (int r = 0; r < MR; r++) {      \
    UNROLL for (int j = 0; j < NV; j++) {    \
      STATEMENT;                             \
    }                                        \
  }

// Where a tile's rows go: y of the first one, and how far apart rows and their pixels (of the residual) are.
typedef struct {
  float *y;
  int32_t y_step, pixel, pixel_step;
} Target;
