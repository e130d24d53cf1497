// The order in which a convolution walks its units: groups, blocks of panels that stay in the first cache, tiles of
// pixels, panels of the block. Included once per file, after MR and NR are defined.
//
//   Units: as of conv2d_tile.h.
#pragma once

#include "conv2d_geometry.h"

#define PANEL_BYTES 49152  // of weights that are used for all pixels before the next ones

// Where the walk over units stands: group, block of panels, tile, panel in the block.
typedef struct {
  int32_t panel_size, panels, tiles, block;  // floats of a stored panel; panels of NR columns, which tiles read
  int32_t unit, group, first, width, tile, panel;
} Order;

INLINE int32_t block_width(const Order *o) { return o->panels - o->first < o->block ? o->panels - o->first : o->block; }

INLINE Order start_order(const Conv *c, int32_t unit) {
  const int32_t panel_size = PANEL + c->kh * c->kw * c->ci * PANEL, panels = (c->co + NR - 1) / NR;
  const int32_t tiles = (c->pixels + MR - 1) / MR, fitting = PANEL_BYTES / (panel_size * PANELS * 4);
  const int32_t block = fitting < 1 ? 1 : fitting < panels ? fitting : panels;
  Order o = {panel_size, panels, tiles, block, unit, unit / (panels * tiles), 0, 0, 0, 0};
  int32_t rest = unit - o.group * panels * tiles;
  o.first = rest / (block * tiles) * block;
  rest -= o.first * tiles;
  o.width = block_width(&o);
  o.tile = rest / o.width;
  o.panel = o.first + rest % o.width;
  return o;
}

// From the end of a tile's panels to the next tile. 1 if that is the first tile of other panels.
INLINE int next_tile(Order *o) {
  o->panel = o->first;
  if (++o->tile < o->tiles) return 0;
  o->tile = 0;
  o->first += o->width;
  if (o->first == o->panels) {
    o->first = 0;
    o->group++;
  }
  o->width = block_width(o);
  o->panel = o->first;
  return 1;
}

#if PANELS == 1
INLINE Columns panel_of(const Conv *c, const Order *o) {
  return c->w + (o->group * o->panels + o->panel) * o->panel_size;
}
#else
// Behind the last stored panel it comes again: its sums are not stored there.
INLINE Columns panel_of(const Conv *c, const Order *o) {
  const int32_t stored = (c->co + PANEL - 1) / PANEL;
  Columns w;
  UNROLL for (int p = 0; p < PANELS; p++) {
    const int32_t at = o->panel * PANELS + p < stored ? o->panel * PANELS + p : stored - 1;
    w.of[p] = c->w + (o->group * stored + at) * o->panel_size;
  }
  return w;
}
#endif

// The tile's rows where a window is one pixel; rows past the last pixel repeat it.
INLINE void find_pixels(const float *a[MR], const Conv *c, const Order *o) {
  const int32_t last = c->pixels - 1;
  UNROLL for (int r = 0; r < MR; r++) {
    const int32_t pixel = o->tile * MR + r < last ? o->tile * MR + r : last;
    a[r] = c->x + pixel * c->x_stride + o->group * c->ci;
  }
}
