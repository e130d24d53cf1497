"""Numbers that the WASM kernels and Python share; the kernels' build writes them into constants.h for C.

A program fits a module only if both were made with the same ones: they are part of `KERNELS.abi`.
"""

# the form of a plan, which `run` walks
PROGRAM_MAGIC = 0x57495031
PROGRAM_VERSION = 3
PROGRAM_HEADER_WORDS = 4  # magic, version, records, words in all
PROGRAM_RECORD_WORDS = 4  # kernel id, words of the record, units, shares; then the arguments

# what a kernel instance's memory may grow to: all but the last page, so that ends are words too
MEMORY_MAX_BYTES = 0xFFFF0000
MEMORY_STACK_BYTES = 65536  # of each thread
MEMORY_SPARE_BYTES = 16  # that a kernel may read past the end of a block

# include/thread_pool.h
THREAD_POOL_BYTES = 512  # of the pool's state, with room
THREAD_POOL_POISONED_WORD = 64  # of the state: someone gave up
THREAD_POOL_MAX_NAPS_WORD = 65  # of the state: naps that make the deadline
THREAD_POOL_NAP_MS = 2

# include/simd.h
VECTOR_LANES = 4

# include/walk.h
WALK_MAX_RANK = 16
WALK_MAX_OPERANDS = 3

# what ends a convolution, include/epilogue.h
ACTIVATION_CLAMP = 0
ACTIVATION_PRELU = 1
ACTIVATION_HARD_SWISH = 2
ACTIVATION_SIGMOID = 3
ACTIVATION_TANH = 4
ACTIVATION_SILU = 5
ACTIVATION_GELU = 6
ACTIVATION_GELU_TANH = 7

# f32_attention.c
ATTENTION_MAX_WIDTH = 256  # elements of a query, a key or a value
ATTENTION_ROWS = 24  # queries of a unit: 16 to 48 are as fast while keys and values stay in the second cache
ATTENTION_NARROW = 64  # elements of a query and a value up to which a unit has twice as many: 64 KB hold their lanes
ATTENTION_MIDDLE = 128  # the same up to which it has ATTENTION_ROWS
ATTENTION_WIDE_ROWS = 16  # of a unit of wider ones, whose lanes take as much
ATTENTION_CACHED_WIDTH = 128  # elements of a head of attention over a cache
ATTENTION_CACHED_ROWS = 4  # queries of a unit of attention over a cache
ATTENTION_CACHED_SIDE = 8  # keys that lie side by side in a cache
ATTENTION_CACHED_MOST = 4095  # of a cache of whole numbers: its largest one
ATTENTION_CACHED_HEAD = 4  # floats that a part of a row's keys gives before its sums

# types of weights in blocks, as GGUF numbers them: include/blocks.h
BLOCKS_F32 = 0
BLOCKS_F16 = 1
BLOCKS_Q4_0 = 2
BLOCKS_Q4_1 = 3
BLOCKS_Q5_0 = 6
BLOCKS_Q5_1 = 7
BLOCKS_Q8_0 = 8
BLOCKS_Q4_K = 12
BLOCKS_Q5_K = 13
BLOCKS_Q6_K = 14
BLOCKS_BF16 = 30
BLOCKS_PANEL = 4  # rows of weights of a unit
BLOCKS_WIDE = 8  # the same, where several rows of activations are multiplied
BLOCKS_MAX_ROWS = 256  # of activations

# include/conv2d_image_tile.h
IMAGE_TILE_COLUMNS = 8

# f32_pool2d_nhwc.c
POOL_UNIT_CHANNELS = 64

# where an output sample lies, include/resample.h
RESAMPLE_PLAIN = 0
RESAMPLE_CORNERS = 1
RESAMPLE_HALF_PIXEL = 2

# a dimension of a sparse constant, densify.c
SPARSITY_DENSE = 0
SPARSITY_CSR = 1
SPARSITY_MAX_LEVELS = 16

# quantised convolutions; q8_pack_weights.c makes the panels
Q8_ROWS = 4  # pixels of a tile
Q8_COLUMNS = 8  # outputs of a panel
Q8_HEAD_BYTES = 96  # of a panel, before its weights
Q8_WINOGRAD_HEAD_BYTES = 64  # the same of a panel of transformed weights
Q8_MAX_TAPS = 256  # of a depthwise window
Q8_TAPS_3X3_S1 = (0, 3, 1, 4, 2, 5, 8, 7, 6)  # the order in which q8_depthwise_nhwc_3x3.c pairs them
Q8_TAPS_3X3_S2 = (0, 3, 1, 4, 2, 5, 6, 7, 8)

# f32_conv2d_nhwc_winograd.c and q8_conv2d_nhwc_winograd.c
WINOGRAD_TILES = 12  # of 4x4 outputs, transformed together
WINOGRAD_POINTS = 36  # products a tile
WINOGRAD_SQUARE = 12  # values of 2x2 pixels of a picture
WINOGRAD_LINE_TILES = 24  # of 4 outputs in a line, transformed together; f32_conv2d_nhwc_winograd_line.c
WINOGRAD_LINE_POINTS = 6

# f32_posenet_decode.c
POSE_FLOATS = 52  # of a pose: its mean, 17 points, 17 scores

# f32_recurrent.c
RECURRENT_COLUMNS = 32  # of a panel of weights
RECURRENT_RNN = 0
RECURRENT_GRU = 1
RECURRENT_LSTM = 2
RECURRENT_ROUNDED = 1  # the state before each product, to levels of 8 bits
RECURRENT_SYMMETRIC = 2  # to levels as far below zero as above

# what u8_picture_to_f32.c reads outside the picture
BORDER_BLACK = 0
BORDER_REPEAT = 1

# how it reads between pixels
SAMPLING_EXACT = 0
SAMPLING_FIXED = 1  # as OpenCV's 8-bit arithmetic does
