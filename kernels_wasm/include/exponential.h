// e^x for kernels of language models: where code must be small there is one copy, in f32_swiglu.c.
#pragma once

#include "math.h"
#include "small.h"

#if SIMD
INLINE v4f exponential(v4f x) { return v4f_exp(x); }
#else
v4f exponential(v4f x);
#endif
