// How code is kept small where speed is not what a build is for.
#pragma once

#include "simd.h"

// For what nobody waits for in a build without SIMD: the smallest code there, and one copy of it.
#if SIMD
#define SMALL
#define SMALL_PART INLINE
#else
#define SMALL __attribute__((minsize))
#define SMALL_PART static __attribute__((minsize, noinline))
#endif
