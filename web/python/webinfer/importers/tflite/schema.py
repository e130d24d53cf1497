"""The numbers of TFLite's file format: tables with their slots, enums, operators.

Source: tensorflow v2.18.0, tensorflow/compiler/mlir/lite/schema/schema.fbs (file identifier "TFL3").
A test compares every row with the `tflite` package of that version.
"""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.importers.readers.flatbuffer import Field

# Each word is one slot, in order: name:kind, or name:kind=default. "-" is a slot nobody may read.
_TABLES = {
    "Model": "version:u32 operator_codes:[OperatorCode] subgraphs:[SubGraph] description:str buffers:[Buffer] "
             "metadata_buffer:[i32] metadata:[Metadata] signature_defs:[SignatureDef]",
    "OperatorCode": "deprecated_builtin_code:i8 custom_code:str version:i32=1 builtin_code:i32",
    "SubGraph": "tensors:[Tensor] inputs:[i32] outputs:[i32] operators:[Operator] name:str debug_metadata_index:i32=-1",
    "Buffer": "data:[u8] offset:u64 size:u64",
    "Metadata": "name:str buffer:u32",
    "SignatureDef": "inputs:[TensorMap] outputs:[TensorMap] signature_key:str - subgraph_index:u32",
    "TensorMap": "name:str tensor_index:u32",
    "Tensor": "shape:[i32] type:i8 buffer:u32 name:str quantization:QuantizationParameters is_variable:bool "
              "sparsity:SparsityParameters shape_signature:[i32] has_rank:bool variant_tensors:[VariantSubType]",
    "VariantSubType": "shape:[i32] type:i8 has_rank:bool",
    "QuantizationParameters": "min:[f32] max:[f32] scale:[f32] zero_point:[i64] details_type:u8 details:union "
                              "quantized_dimension:i32",
    "BlockwiseQuantization": "scales:i32 zero_points:i32 block_size:i32 block_shape:[i32]",
    "SparsityParameters": "traversal_order:[i32] block_map:[i32] dim_metadata:[DimensionMetadata]",
    "DimensionMetadata": "format:i8 dense_size:i32 array_segments_type:u8 array_segments:union "
                         "array_indices_type:u8 array_indices:union",
    "Int32Vector": "values:[i32]",
    "Uint16Vector": "values:[u16]",
    "Uint8Vector": "values:[u8]",
    "Operator": "opcode_index:u32 inputs:[i32] outputs:[i32] builtin_options_type:u8 builtin_options:union "
                "custom_options:[u8] custom_options_format:i8 mutating_variable_inputs:[bool] intermediates:[i32] "
                "large_custom_options_offset:u64 large_custom_options_size:u64 builtin_options_2_type:u8 "
                "builtin_options_2:union debug_metadata_index:i32=-1",
    "AddOptions": "fused_activation_function:i8 pot_scale_int16:bool=1",
    "ArgMaxOptions": "output_type:i8",
    "ArgMinOptions": "output_type:i8",
    "BatchMatMulOptions": "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool",
    "BidirectionalSequenceLSTMOptions": "fused_activation_function:i8 cell_clip:f32 proj_clip:f32 merge_outputs:bool "
                                        "time_major:bool=1 asymmetric_quantize_inputs:bool",
    "BidirectionalSequenceRNNOptions": "time_major:bool fused_activation_function:i8 merge_outputs:bool "
                                       "asymmetric_quantize_inputs:bool",
    "AssignVariableOptions": "",
    "BucketizeOptions": "boundaries:[f32]",
    "CallOnceOptions": "init_subgraph_index:i32",
    "CastOptions": "in_data_type:i8 out_data_type:i8",
    "ConcatenationOptions": "axis:i32 fused_activation_function:i8",
    "Conv2DOptions": "padding:i8 stride_w:i32 stride_h:i32 fused_activation_function:i8 dilation_w_factor:i32=1 "
                     "dilation_h_factor:i32=1 quantized_bias_type:i8",
    "Conv3DOptions": "padding:i8 stride_d:i32 stride_w:i32 stride_h:i32 fused_activation_function:i8 "
                     "dilation_d_factor:i32=1 dilation_w_factor:i32=1 dilation_h_factor:i32=1",
    "CumsumOptions": "exclusive:bool reverse:bool",
    "DepthToSpaceOptions": "block_size:i32",
    "DepthwiseConv2DOptions": "padding:i8 stride_w:i32 stride_h:i32 depth_multiplier:i32 fused_activation_function:i8 "
                              "dilation_w_factor:i32=1 dilation_h_factor:i32=1",
    "DivOptions": "fused_activation_function:i8",
    "FakeQuantOptions": "min:f32 max:f32 num_bits:i32 narrow_range:bool",
    "FullyConnectedOptions": "fused_activation_function:i8 weights_format:i8 keep_num_dims:bool "
                             "asymmetric_quantize_inputs:bool quantized_bias_type:i8",
    "GatherOptions": "axis:i32 batch_dims:i32",
    "GeluOptions": "approximate:bool",
    "IfOptions": "then_subgraph_index:i32 else_subgraph_index:i32",
    "L2NormOptions": "fused_activation_function:i8",
    "LSTMOptions": "fused_activation_function:i8 cell_clip:f32 proj_clip:f32 kernel_type:i8 "
                   "asymmetric_quantize_inputs:bool",
    "LeakyReluOptions": "alpha:f32",
    "LocalResponseNormalizationOptions": "radius:i32 bias:f32 alpha:f32 beta:f32",
    "MirrorPadOptions": "mode:i8",
    "MulOptions": "fused_activation_function:i8",
    "OneHotOptions": "axis:i32",
    "PackOptions": "values_count:i32 axis:i32",
    "Pool2DOptions": "padding:i8 stride_w:i32 stride_h:i32 filter_width:i32 filter_height:i32 "
                     "fused_activation_function:i8",
    "RNNOptions": "fused_activation_function:i8 asymmetric_quantize_inputs:bool",
    "ReadVariableOptions": "",
    "ReduceWindowOptions": "reduce_function:i32",
    "ReducerOptions": "keep_dims:bool",
    "ReshapeOptions": "new_shape:[i32]",
    "ResizeBilinearOptions": "- - align_corners:bool half_pixel_centers:bool",
    "ResizeNearestNeighborOptions": "align_corners:bool half_pixel_centers:bool",
    "ReverseSequenceOptions": "seq_dim:i32 batch_dim:i32",
    "SVDFOptions": "rank:i32 fused_activation_function:i8 asymmetric_quantize_inputs:bool",
    "Rfft2dOptions": "",
    "SequenceRNNOptions": "time_major:bool fused_activation_function:i8 asymmetric_quantize_inputs:bool",
    "ShapeOptions": "out_type:i8",
    "SoftmaxOptions": "beta:f32",
    "SpaceToDepthOptions": "block_size:i32",
    "SplitOptions": "num_splits:i32",
    "SplitVOptions": "num_splits:i32",
    "SqueezeOptions": "squeeze_dims:[i32]",
    "StableHLOCompositeOptions": "name:str decomposition_subgraph_index:i32 composite_attributes:[u8] "
                                 "composite_attributes_format:i8 version:i32",
    "StablehloPadOptions": "edge_padding_low:[i64] edge_padding_high:[i64] interior_padding:[i64]",
    "StablehloReduceWindowOptions": "window_dimensions:[i64] window_strides:[i64] base_dilations:[i64] "
                                    "window_dilations:[i64] padding:[i64] body_subgraph_index:i32",
    "StridedSliceOptions": "begin_mask:i32 end_mask:i32 ellipsis_mask:i32 new_axis_mask:i32 shrink_axis_mask:i32 "
                           "offset:bool",
    "SubOptions": "fused_activation_function:i8 pot_scale_int16:bool=1",
    "TransposeConvOptions": "padding:i8 stride_w:i32 stride_h:i32 fused_activation_function:i8 quantized_bias_type:i8",
    "UnidirectionalSequenceLSTMOptions": "fused_activation_function:i8 cell_clip:f32 proj_clip:f32 time_major:bool "
                                         "asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool",
    "UniqueOptions": "idx_out_type:i8=2",
    "UnpackOptions": "num:i32 axis:i32",
    "VarHandleOptions": "container:str shared_name:str",
    "WhileOptions": "cond_subgraph_index:i32 body_subgraph_index:i32",
}  # fmt: skip


def fields(words: str) -> dict[str, Field]:
    """A table's fields by name, from its words."""
    found = {}
    for slot, word in enumerate(words.split()):
        if word != "-":
            name, _, rest = word.partition(":")
            kind, _, default = rest.partition("=")
            found[name] = Field(slot, kind, int(default or 0))
    return found


SCHEMA = {kind: fields(words) for kind, words in _TABLES.items()}

# Members of the union BuiltinOptions that we read, by their tag.
OPTIONS = {
    1: "Conv2DOptions", 2: "DepthwiseConv2DOptions", 5: "Pool2DOptions", 6: "SVDFOptions", 7: "RNNOptions",
    8: "FullyConnectedOptions", 9: "SoftmaxOptions", 10: "ConcatenationOptions", 11: "AddOptions", 12: "L2NormOptions",
    13: "LocalResponseNormalizationOptions", 14: "LSTMOptions", 15: "ResizeBilinearOptions", 17: "ReshapeOptions",
    19: "SpaceToDepthOptions", 21: "MulOptions", 23: "GatherOptions", 27: "ReducerOptions", 28: "SubOptions",
    29: "DivOptions", 30: "SqueezeOptions", 31: "SequenceRNNOptions", 32: "StridedSliceOptions", 35: "SplitOptions",
    37: "CastOptions", 40: "ArgMaxOptions", 49: "TransposeConvOptions", 55: "ShapeOptions", 57: "ArgMinOptions",
    58: "FakeQuantOptions", 59: "PackOptions", 61: "OneHotOptions", 64: "UnpackOptions",
    69: "BidirectionalSequenceLSTMOptions", 70: "BidirectionalSequenceRNNOptions",
    71: "UnidirectionalSequenceLSTMOptions", 74: "ResizeNearestNeighborOptions", 75: "LeakyReluOptions",
    77: "MirrorPadOptions", 79: "SplitVOptions", 80: "UniqueOptions",
    87: "ReverseSequenceOptions", 92: "IfOptions", 93: "WhileOptions",
    94: "DepthToSpaceOptions", 101: "BatchMatMulOptions", 102: "CumsumOptions",
    103: "CallOnceOptions", 105: "Rfft2dOptions", 106: "Conv3DOptions", 111: "VarHandleOptions",
    112: "ReadVariableOptions", 113: "AssignVariableOptions", 115: "BucketizeOptions", 116: "GeluOptions",
}  # fmt: skip

# Members of the union BuiltinOptions2 that we read.
OPTIONS_2 = {
    10: "StablehloPadOptions", 13: "StablehloReduceWindowOptions", 20: "ReduceWindowOptions",
    21: "StableHLOCompositeOptions",
}  # fmt: skip

# BuiltinOperator, in the order of its values.
OPERATORS = (
    "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR "
    "FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC "
    "LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH "
    "SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER "
    "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE "
    "BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM "
    "ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE "
    "TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK "
    "LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL "
    "FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL "
    "REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND "
    "HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM "
    "BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS "
    "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE "
    "ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU "
    "DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 "
    "UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE "
    "STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE "
    "STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE "
    "STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG "
    "STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT "
    "STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT "
    "STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL "
    "STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE "
    "STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT "
    "STABLEHLO_CASE"
).split()  # fmt: skip
CUSTOM = OPERATORS.index("CUSTOM")

# TensorType, in the order of its values.
TENSOR_TYPES = (
    "FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE VARIANT "
    "UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4"
).split()  # fmt: skip
BLOCKWISE = 2  # of QuantizationDetails
DTYPES = {i: DType[name] for i, name in enumerate(TENSOR_TYPES) if name in DType.__members__}

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
PADDINGS = ("SAME", "VALID")
MIRROR_PAD_MODES = ("reflect", "symmetric")
DENSE, SPARSE_CSR = 0, 1
INDEX_VECTORS = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}
SHUFFLED_WEIGHTS = 1  # FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8

# The newest version of each operator that ai-edge-litert 2.3.0 runs; the others have one version.
# A newer one may mean something that we would not notice.
_NEWEST = (
    "ABS:5 ADD:6 ARG_MAX:3 ARG_MIN:3 AVERAGE_POOL_2D:3 BATCH_MATMUL:4 BATCH_TO_SPACE_ND:4 "
    "BIDIRECTIONAL_SEQUENCE_LSTM:3 BIDIRECTIONAL_SEQUENCE_RNN:3 BROADCAST_TO:4 CAST:9 CONCATENATION:7 CONV_2D:8 COS:2 "
    "DEPTHWISE_CONV_2D:7 DEPTH_TO_SPACE:2 DEQUANTIZE:9 DIV:2 DYNAMIC_UPDATE_SLICE:6 EMBEDDING_LOOKUP:5 EQUAL:5 EXP:2 "
    "FAKE_QUANT:2 FILL:5 FLOOR_DIV:3 FLOOR_MOD:2 FULLY_CONNECTED:14 GATHER:8 GATHER_ND:6 GELU:3 GREATER:2 "
    "GREATER_EQUAL:3 L2_NORMALIZATION:2 LEAKY_RELU:2 LESS:3 LESS_EQUAL:2 LOG:2 LOGISTIC:3 LOG_SOFTMAX:2 LSTM:4 "
    "MAXIMUM:4 MAX_POOL_2D:3 MEAN:3 MINIMUM:4 MIRROR_PAD:3 MUL:8 NOT_EQUAL:4 PACK:5 PAD:6 PADV2:6 QUANTIZE:6 RANGE:2 "
    "REDUCE_MAX:3 REDUCE_MIN:3 REDUCE_PROD:2 RELU6:3 RELU:3 RESIZE_BILINEAR:4 RESIZE_NEAREST_NEIGHBOR:4 REVERSE_V2:4 "
    "RNN:3 RSQRT:3 SELECT:4 SELECT_V2:2 SIGN:2 SIN:2 SLICE:8 SOFTMAX:4 SPACE_TO_BATCH_ND:4 SPACE_TO_DEPTH:2 "
    "SPARSE_TO_DENSE:3 SPLIT:5 SPLIT_V:3 SQRT:2 SQUARED_DIFFERENCE:2 SQUEEZE:2 STRIDED_SLICE:8 SUB:5 SUM:2 SVDF:4 "
    "TANH:3 TILE:3 TOPK_V2:3 TRANSPOSE:9 TRANSPOSE_CONV:5 UNIDIRECTIONAL_SEQUENCE_LSTM:4 "
    "UNIDIRECTIONAL_SEQUENCE_RNN:3 UNPACK:6 WHERE:2"
).split()
VERSIONS = {name: int(version) for name, _, version in (word.partition(":") for word in _NEWEST)}
