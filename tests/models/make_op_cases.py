#!/usr/bin/env python3
"""Single-operator models, and random programs of control flow, with the outputs that ONNX Runtime gives: the conformance data of
the importer and the kernels.

    make_op_cases.py -o DIR [--filter REGEX] [--list]

Writes DIR/CASE/model.onnx, DIR/CASE/input_NAME.npy and DIR/CASE/output_NAME.npy for every case, and DIR/index.json: a list of
{"name", "op", "model", "inputs": {tensor: file}, "outputs": {tensor: file}, "rtol", "atol"}. Graph inputs are what changes at run
time; what networks keep constant (weights, axes, shapes) is an initializer. A case that ONNX Runtime refuses is left out and
reported, and the exit status is then 1.
"""
import argparse
import json
import os
import re
import sys
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

import random_programs
import reference

OPSET = 17
F, I, B = np.float32, np.int64, np.bool_


class Const:
    """An input of the node that is an initializer of the graph."""

    def __init__(self, value, dtype=None):
        self.value = np.asarray(value, dtype=dtype)


class Case:
    def __init__(self, name, op, inputs, attributes, outputs, opset, rtol, atol):
        self.name, self.op, self.inputs, self.attributes = name, op, inputs, attributes
        self.outputs, self.opset, self.rtol, self.atol = outputs, opset, rtol, atol

    def model(self):
        return make_model(self)


class Program:
    """A model of several nodes, with its inputs."""

    def __init__(self, name, op, model, feeds):
        self.name, self.op, self.whole, self.rtol, self.atol = name, op, (model, feeds), 1e-4, 1e-5

    def model(self):
        return self.whole


CASES = []


def case(name, op, inputs, outputs=1, opset=OPSET, rtol=1e-4, atol=1e-5, **attributes):
    """`inputs`: arrays become graph inputs, Const initializers, None an input left out."""
    assert all(c.name != name for c in CASES), name
    CASES.append(Case(name, op, inputs, attributes, outputs, opset, rtol, atol))


def rand(*shape, low=-1.0, high=1.0, dtype=F):
    """Every call its own stream: inserting a case changes no other."""
    rand.calls += 1
    random = np.random.default_rng(zlib.crc32(f"{len(CASES)}/{rand.calls}/{shape}".encode()))
    if np.issubdtype(dtype, np.floating):
        return np.asarray(random.random(shape) * (high - low) + low, dtype)
    if dtype == np.bool_:
        return np.asarray(random.integers(0, 2, shape), dtype)
    return np.asarray(random.integers(int(low), int(high), shape), dtype)


rand.calls = 0


def group1():
    shapes = {"same": ((2, 3, 5), (2, 3, 5)), "row": ((2, 3, 5), (5,)), "column": ((2, 3, 5), (3, 1)), "outer": ((4, 1), (1, 7)),
              "scalar": ((3, 17), ()), "left": ((6,), (2, 4, 6))}
    for op in ["Add", "Sub", "Mul", "Div"]:
        for what, (a, b) in shapes.items():
            case(f"{op.lower()}_{what}", op, [rand(*a), rand(*b, low=0.5, high=2)])
        case(f"{op.lower()}_int64", op, [rand(3, 4, low=-20, high=20, dtype=I), rand(4, low=1, high=9, dtype=I)])
    case("add_constant", "Add", [rand(1, 8, 5, 5), Const(rand(8, 1, 1))])

    conv = [
        ("plain", (1, 3, 9, 11), (5, 3, 3, 3), {}),
        ("same", (1, 4, 7, 7), (8, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
        ("stem", (1, 3, 33, 31), (16, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
        ("pointwise", (1, 16, 5, 7), (24, 16, 1, 1), {}),
        ("pointwise_stride", (1, 6, 9, 9), (10, 6, 1, 1), {"strides": [2, 2]}),
        ("asymmetric", (2, 3, 8, 9), (4, 3, 3, 2), {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
        ("dilated", (1, 3, 12, 13), (6, 3, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
        ("groups", (1, 8, 6, 7), (12, 2, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
        ("depthwise", (1, 9, 8, 7), (9, 1, 3, 3), {"group": 9, "pads": [1, 1, 1, 1]}),
        ("depthwise_stride", (1, 16, 9, 9), (16, 1, 5, 5), {"group": 16, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
        ("depthwise_multiplier", (1, 4, 6, 6), (8, 1, 3, 3), {"group": 4}),
        ("same_upper", (1, 3, 7, 8), (4, 3, 4, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ("same_lower", (1, 3, 7, 8), (4, 3, 4, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
        ("valid", (1, 3, 7, 8), (4, 3, 3, 3), {"auto_pad": "VALID"}),
        ("one_dimension", (1, 4, 20), (6, 4, 5), {"pads": [2, 2], "strides": [2]}),
        ("one_dimension_dilated", (2, 4, 20), (6, 2, 3), {"group": 2, "dilations": [4], "pads": [4, 4]}),
        ("three_dimensions", (1, 2, 5, 6, 7), (3, 2, 3, 3, 2), {"pads": [1, 1, 0, 1, 1, 1]}),
    ]
    for what, x, w, attributes in conv:
        case(f"conv_{what}", "Conv", [rand(*x), Const(rand(*w))], **attributes)
        case(f"conv_{what}_bias", "Conv", [rand(*x), Const(rand(*w)), Const(rand(w[0]))], **attributes)
    case("conv_dynamic_weights", "Conv", [rand(1, 3, 6, 6), rand(4, 3, 3, 3), rand(4)])

    for what, a, b in [("matrix", (5, 7), (7, 9)), ("batch", (3, 5, 7), (3, 7, 4)), ("broadcast", (2, 3, 5, 7), (7, 4)),
                       ("broadcast_both", (2, 1, 5, 7), (3, 7, 4)), ("vector_matrix", (7,), (7, 4)), ("matrix_vector", (5, 7), (7,)),
                       ("dot", (7,), (7,)), ("batch_vector", (2, 5, 7), (7,)), ("vector_batch", (5,), (3, 5, 2)),
                       ("attention", (1, 4, 16, 8), (1, 4, 8, 16))]:
        case(f"matmul_{what}", "MatMul", [rand(*a), rand(*b)])
        if len(b) >= 2:
            case(f"matmul_{what}_constant", "MatMul", [rand(*a), Const(rand(*b))])
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a = rand(7, 5) if trans_a else rand(5, 7)
            b = rand(6, 7) if trans_b else rand(7, 6)
            case(f"gemm_{trans_a}{trans_b}", "Gemm", [a, b, rand(6)], transA=trans_a, transB=trans_b)
            case(f"gemm_{trans_a}{trans_b}_constant", "Gemm", [a, Const(b), Const(rand(6))], transA=trans_a, transB=trans_b)
    case("gemm_alpha_beta", "Gemm", [rand(3, 4), rand(4, 5), rand(3, 5)], alpha=0.5, beta=2.0)
    case("gemm_no_bias", "Gemm", [rand(3, 4), rand(4, 5)], alpha=1.5)
    case("gemm_column_bias", "Gemm", [rand(3, 4), rand(4, 5), rand(3, 1)])
    case("gemm_scalar_bias", "Gemm", [rand(3, 4), rand(4, 5), rand()])

    for what, shape, target in [("split", (2, 12, 5), (2, 3, 4, 5)), ("merge", (2, 3, 4, 5), (6, 20)), ("minus_one", (4, 6), (3, -1)),
                                ("zero_copies", (2, 3, 4), (0, -1)), ("mixed", (4, 6, 5), (3, 8, 5)), ("ones", (1, 5, 1), (5,))]:
        case(f"reshape_{what}", "Reshape", [rand(*shape), Const(target, I)])
    case("reshape_scalar", "Reshape", [rand(1, 1), Const(np.zeros((0,)), I)])
    for perm in [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (0, 2, 1, 3), (1, 0, 2, 3)]:
        case("transpose_" + "".join(map(str, perm)), "Transpose", [rand(2, 3, 4, 5)], perm=list(perm))
    case("transpose_default", "Transpose", [rand(3, 4, 5)])
    case("concat_channels", "Concat", [rand(1, 3, 4, 5), rand(1, 2, 4, 5), rand(1, 7, 4, 5)], axis=1)
    case("concat_last", "Concat", [rand(2, 3), rand(2, 1)], axis=-1)
    case("concat_constant", "Concat", [rand(1, 4, 6), Const(rand(1, 1, 6))], axis=1)
    case("concat_same", "Concat", [rand(2, 2), rand(2, 2)], axis=0)
    for axis in (0, 1, -1):
        case(f"softmax_axis{axis}".replace("-", "m"), "Softmax", [rand(3, 5, 17, low=-5, high=5)], axis=axis)
        case(f"log_softmax_axis{axis}".replace("-", "m"), "LogSoftmax", [rand(3, 5, 17, low=-5, high=5)], axis=axis)
    case("softmax_large", "Softmax", [rand(2, 100, low=-80, high=80)])
    case("softmax_opset11", "Softmax", [rand(2, 3, 4)], opset=11, axis=1)
    case("identity", "Identity", [rand(2, 3)])
    for op in ["Relu", "Sigmoid"]:
        case(op.lower(), op, [rand(3, 5, 7, low=-6, high=6)])
    case("global_average_pool", "GlobalAveragePool", [rand(2, 5, 7, 6)])
    case("global_average_pool_1d", "GlobalAveragePool", [rand(2, 5, 7)])
    case("global_max_pool", "GlobalMaxPool", [rand(2, 5, 7, 6)])
    for axis in (0, 1, 2, -1):
        case(f"flatten_{axis}".replace("-", "m"), "Flatten", [rand(2, 3, 4, 5)], axis=axis)
    pools = [
        ("plain", (1, 3, 8, 10), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("resnet", (1, 6, 15, 13), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("five", (1, 4, 9, 9), {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2, 2, 2, 2]}),
        ("ceil", (1, 3, 8, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("asymmetric", (1, 3, 8, 7), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 1, 1, 0]}),
        ("same_upper", (1, 3, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ("one_dimension", (1, 3, 17), {"kernel_shape": [4], "strides": [3], "pads": [1, 2]}),
        ("three_dimensions", (1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2]}),
    ]
    for what, shape, attributes in pools:
        case(f"max_pool_{what}", "MaxPool", [rand(*shape)], **attributes)
        case(f"average_pool_{what}", "AveragePool", [rand(*shape)], **attributes)
        case(f"average_pool_{what}_include", "AveragePool", [rand(*shape)], count_include_pad=1, **attributes)
    case("max_pool_dilated", "MaxPool", [rand(1, 3, 11, 12)], kernel_shape=[3, 2], dilations=[2, 3], pads=[1, 0, 1, 1])
    case("max_pool_ceil_padded", "MaxPool", [rand(1, 3, 6, 7)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1)
    case("average_pool_ceil_padded", "AveragePool", [rand(1, 3, 6, 6)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         ceil_mode=1)
    case("clip_both", "Clip", [rand(3, 7, low=-9, high=9), Const(0.0, F), Const(6.0, F)])
    case("clip_low", "Clip", [rand(3, 7, low=-9, high=9), Const(-1.0, F)])
    case("clip_high", "Clip", [rand(3, 7, low=-9, high=9), None, Const(2.5, F)])
    case("clip_none", "Clip", [rand(3, 7)])
    case("clip_opset10", "Clip", [rand(3, 7, low=-9, high=9)], opset=10, min=0.0, max=6.0)
    far = np.iinfo(np.int64).max
    for what, starts, ends, axes, steps in [
            ("front", [0], [3], [1], None), ("middle", [1, 2], [-1, 7], [0, 2], None), ("to_end", [-3], [far], [-1], None),
            ("steps", [0, 1], [6, 9], [1, 2], [2, 3]), ("backwards", [-1], [-far], [1], [-1]), ("all", [1, 0, 2], [4, 5, 8], None, None)]:
        inputs = [rand(4, 6, 9), Const(starts, I), Const(ends, I)]
        if axes is not None or steps is not None:
            inputs.append(Const(axes, I))
        if steps is not None:
            inputs.append(Const(steps, I))
        case(f"slice_{what}", "Slice", inputs)
    case("slice_opset1", "Slice", [rand(4, 6, 9)], opset=9, starts=[1, 0], ends=[3, -2], axes=[0, 2])
    for what, x, indices, axis in [("rows", (5, 4), (3,), 0), ("columns", (5, 4), (2, 2), 1), ("embedding", (50, 8), (1, 12), 0),
                                   ("scalar", (3, 4, 5), (), 1), ("last", (3, 4, 5), (2,), -1)]:
        size = x[axis]
        case(f"gather_{what}", "Gather", [Const(rand(*x)), rand(*indices, low=0, high=size, dtype=I)], axis=axis)
        case(f"gather_{what}_negative", "Gather", [rand(*x), Const(rand(*indices, low=-size, high=size, dtype=I))], axis=axis)
    case("gather_int32", "Gather", [rand(5, 4), rand(3, low=0, high=5, dtype=np.int32)])
    case("unsqueeze", "Unsqueeze", [rand(3, 4), Const([0, 3], I)])
    case("unsqueeze_negative", "Unsqueeze", [rand(3, 4), Const([-1], I)])
    case("unsqueeze_opset11", "Unsqueeze", [rand(3, 4)], opset=11, axes=[1])
    case("squeeze", "Squeeze", [rand(1, 3, 1, 4), Const([0, 2], I)])
    case("squeeze_all", "Squeeze", [rand(1, 3, 1, 4)])
    case("squeeze_opset11", "Squeeze", [rand(1, 3, 1, 4)], opset=11, axes=[-2])
    case("shape", "Shape", [rand(2, 3, 4)])
    case("shape_part", "Shape", [rand(2, 3, 4, 5)], start=1, end=-1)
    types = {"float32": F, "int64": I, "int32": np.int32, "bool": B}
    onnx_types = {"float32": 1, "int64": 7, "int32": 6, "bool": 9}
    for source, dtype in types.items():
        for target, code in onnx_types.items():
            if source != target:
                case(f"cast_{source}_{target}", "Cast", [rand(3, 7, low=-4, high=4, dtype=dtype)], to=code)
    case("split_even", "Split", [rand(2, 12, 3)], outputs=3, axis=1)
    case("split_sizes", "Split", [rand(2, 12, 3), Const([5, 3, 4], I)], outputs=3, axis=1)
    case("split_last", "Split", [rand(2, 6), Const([2, 4], I)], outputs=2, axis=-1)
    case("split_opset11", "Split", [rand(4, 6)], outputs=2, opset=11, axis=0, split=[1, 3])


def group2():
    for shape in [(2, 5, 6, 7), (3, 5), (2, 5, 9)]:
        params = [Const(rand(5, low=0.5, high=1.5)), Const(rand(5)), Const(rand(5)), Const(rand(5, low=0.5, high=2))]
        case(f"batch_normalization_{len(shape)}d", "BatchNormalization", [rand(*shape)] + params)
    case("batch_normalization_epsilon", "BatchNormalization",
         [rand(1, 3, 4, 4), Const(rand(3)), Const(rand(3)), Const(rand(3)), Const(rand(3, low=0, high=0.1))], epsilon=0.01)
    case("instance_normalization", "InstanceNormalization", [rand(2, 3, 5, 7), Const(rand(3)), Const(rand(3))])
    case("instance_normalization_1d", "InstanceNormalization", [rand(2, 3, 19), Const(rand(3)), Const(rand(3))], epsilon=1e-3)
    case("hard_swish", "HardSwish", [rand(3, 17, low=-6, high=6)])
    case("hard_sigmoid", "HardSigmoid", [rand(3, 17, low=-6, high=6)])
    case("hard_sigmoid_sixth", "HardSigmoid", [rand(3, 17, low=-6, high=6)], alpha=1 / 6, beta=0.5)
    for axes in [[2, 3], [1], [-1], [0, 2], None]:
        what = "all" if axes is None else "_".join(str(a).replace("-", "m") for a in axes)
        for keepdims in (0, 1):
            attributes = {"keepdims": keepdims}
            if axes is not None:
                attributes["axes"] = axes
            case(f"reduce_mean_{what}_keep{keepdims}", "ReduceMean", [rand(2, 3, 5, 7)], **attributes)
    case("reduce_mean_opset18", "ReduceMean", [rand(2, 3, 5), Const([-1], I)], opset=18)
    for mode in ["constant", "reflect", "edge"]:
        case(f"pad_{mode}", "Pad", [rand(1, 2, 5, 6), Const([0, 0, 1, 2, 0, 0, 3, 1], I)], mode=mode)
    case("pad_value", "Pad", [rand(3, 4), Const([1, 0, 0, 2], I), Const(1.5, F)])
    case("pad_negative", "Pad", [rand(5, 6), Const([-1, 1, 0, -2], I)])
    case("pad_opset2", "Pad", [rand(3, 4)], opset=10, pads=[1, 2, 0, 1], mode="constant", value=0.5)
    case("pad_axes", "Pad", [rand(2, 3, 4), Const([1, 2], I), None, Const([1], I)], opset=18)
    for mode in ["nearest", "linear", "cubic"]:
        for coordinates in ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]:
            for what, sizes in [("double", (1, 2, 10, 12)), ("odd", (1, 2, 7, 11)), ("down", (1, 2, 3, 4))]:
                attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
                if mode == "nearest":
                    attributes["nearest_mode"] = "floor" if coordinates == "asymmetric" else "round_prefer_floor"
                case(f"resize_{mode}_{coordinates}_{what}", "Resize", [rand(1, 2, 5, 6), None, None, Const(sizes, I)], **attributes)
    for nearest in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]:
        case(f"resize_rounding_{nearest}", "Resize", [rand(1, 2, 5, 6), None, Const([1, 1, 2, 1.5], F)], mode="nearest",
             nearest_mode=nearest)
    case("resize_scales", "Resize", [rand(1, 3, 4, 5), None, Const([1, 1, 2, 2], F)], mode="nearest",
         coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    case("resize_scales_linear", "Resize", [rand(1, 3, 4, 5), None, Const([1, 1, 1.5, 2.6], F)], mode="linear")
    transposed = [
        ("plain", (1, 3, 5, 6), (3, 4, 3, 3), {}),
        ("double", (1, 4, 5, 3), (4, 2, 2, 2), {"strides": [2, 2]}),
        ("unet", (1, 3, 5, 4), (3, 4, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("output_padding", (1, 3, 5, 4), (3, 2, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ("asymmetric", (1, 2, 4, 5), (2, 3, 3, 4), {"strides": [3, 2], "pads": [0, 1, 2, 0]}),
        ("groups", (1, 6, 4, 4), (6, 2, 3, 3), {"group": 3, "strides": [2, 2]}),
        ("dilated", (1, 2, 4, 5), (2, 3, 3, 2), {"dilations": [2, 3]}),
        ("one_dimension", (1, 3, 7), (3, 2, 4), {"strides": [2]}),
    ]
    for what, x, w, attributes in transposed:
        case(f"conv_transpose_{what}", "ConvTranspose", [rand(*x), Const(rand(*w))], **attributes)
    case("conv_transpose_bias", "ConvTranspose", [rand(1, 3, 4, 4), Const(rand(3, 5, 3, 3)), Const(rand(5))], strides=[2, 2])
    case("conv_transpose_output_shape", "ConvTranspose", [rand(1, 2, 4, 4), Const(rand(2, 3, 3, 3))], strides=[2, 2],
         output_shape=[8, 8])
    case("sum", "Sum", [rand(2, 3, 4), rand(3, 4), rand(4)])
    case("sum_one", "Sum", [rand(2, 3)])
    case("lrn", "LRN", [rand(1, 9, 4, 5)], size=5, alpha=0.1, beta=0.75, bias=1.0)
    case("lrn_defaults", "LRN", [rand(1, 9, 4, 5)], size=3)
    case("dropout", "Dropout", [rand(3, 4)])
    case("dropout_ratio", "Dropout", [rand(3, 4), Const(0.3, F), Const(False, B)])
    case("leaky_relu", "LeakyRelu", [rand(3, 17)])
    case("leaky_relu_alpha", "LeakyRelu", [rand(3, 17)], alpha=0.2)
    case("prelu_channels", "PRelu", [rand(1, 5, 4, 3), Const(rand(5, 1, 1))])
    case("prelu_scalar", "PRelu", [rand(2, 7), Const(rand(1))])
    case("elu", "Elu", [rand(3, 17, low=-4, high=4)], alpha=1.3)
    case("softplus", "Softplus", [rand(3, 17, low=-30, high=30)])
    case("tanh", "Tanh", [rand(3, 17, low=-5, high=5)])
    case("constant_of_shape", "ConstantOfShape", [Const([2, 3], I)], value=numpy_helper.from_array(np.array([1.5], F)))
    case("depth_to_space", "DepthToSpace", [rand(1, 12, 3, 4)], blocksize=2)
    case("depth_to_space_crd", "DepthToSpace", [rand(1, 12, 3, 4)], blocksize=2, mode="CRD")
    case("space_to_depth", "SpaceToDepth", [rand(1, 3, 4, 6)], blocksize=2)


def group3():
    for axis, shape in [(-1, (2, 5, 17)), (1, (2, 5, 7)), (-1, (64,))]:
        size = shape[axis:]
        case(f"layer_normalization_{len(shape)}d_{axis}".replace("-", "m"), "LayerNormalization",
             [rand(*shape), Const(rand(*size)), Const(rand(*size))], axis=axis)
    case("layer_normalization_no_bias", "LayerNormalization", [rand(2, 5, 16), Const(rand(16))], epsilon=1e-3)
    case("layer_normalization_all_outputs", "LayerNormalization", [rand(2, 5, 16), Const(rand(16)), Const(rand(16))], outputs=3)
    for op in ["Erf", "Neg", "Exp", "Cos", "Sin", "Abs", "Floor", "Ceil", "Sign", "Round"]:
        case(op.lower(), op, [rand(3, 5, 7, low=-3, high=3)])
    for op in ["Sqrt", "Log", "Reciprocal"]:
        case(op.lower(), op, [rand(3, 5, 7, low=0.1, high=4)])
    case("gelu", "Gelu", [rand(3, 17, low=-4, high=4)], opset=20)
    case("gelu_tanh", "Gelu", [rand(3, 17, low=-4, high=4)], opset=20, approximate="tanh")
    for exponent in [2.0, 3.0, 0.5, -1.0, -0.5, 1.7]:
        case(f"pow_{exponent}".replace("-", "m").replace(".", "_"), "Pow", [rand(3, 7, low=0.2, high=3), Const(exponent, F)])
    case("pow_tensors", "Pow", [rand(3, 7, low=0.2, high=3), rand(7, low=-2, high=2)])
    case("pow_negative_base", "Pow", [rand(3, 7), Const(3.0, F)])
    case("where", "Where", [rand(3, 4, dtype=B), rand(3, 4), rand(3, 4)])
    case("where_broadcast", "Where", [rand(4, dtype=B), rand(3, 1), Const(-1e9, F)])
    case("where_mask", "Where", [Const(np.tril(np.ones((1, 1, 6, 6))), B), rand(2, 3, 6, 6), Const(-np.inf, F)])
    case("expand", "Expand", [rand(3, 1), Const([2, 3, 4], I)])
    case("expand_smaller", "Expand", [rand(3, 4), Const([1, 1], I)])
    for op in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]:
        case(f"{op.lower()}_float", op, [rand(3, 4), rand(4)])
        case(f"{op.lower()}_int64", op, [rand(3, 4, low=0, high=3, dtype=I), rand(4, low=0, high=3, dtype=I)])
    case("equal_bool", "Equal", [rand(3, 4, dtype=B), rand(4, dtype=B)])
    for op in ["And", "Or", "Xor"]:
        case(op.lower(), op, [rand(3, 4, dtype=B), rand(4, dtype=B)])
    case("not", "Not", [rand(3, 4, dtype=B)])
    case("isnan", "IsNaN", [np.array([1.0, np.nan, np.inf, -np.inf, 0.0], F)])
    case("isinf", "IsInf", [np.array([1.0, np.nan, np.inf, -np.inf, 0.0], F)])
    case("range", "Range", [Const(2, I), Const(11, I), Const(3, I)])
    case("range_float", "Range", [Const(0.0, F), Const(1.0, F), Const(0.3, F)])
    for op in ["Max", "Min", "Mean"]:
        case(f"{op.lower()}_three", op, [rand(2, 3, 4), rand(3, 4), rand(4)])
    case("max_int64", "Max", [rand(3, 4, low=-5, high=5, dtype=I), rand(4, low=-5, high=5, dtype=I)])
    case("gather_nd", "GatherND", [rand(3, 4, 5), Const(rand(2, 2, low=0, high=3, dtype=I))])
    case("gather_nd_batch", "GatherND", [rand(3, 4, 5), rand(3, 2, 1, low=0, high=4, dtype=I)], batch_dims=1)
    case("gather_elements", "GatherElements", [rand(4, 5), rand(3, 5, low=-4, high=4, dtype=I)], axis=0)
    case("scatter_nd", "ScatterND", [rand(4, 5, 3), Const([[0], [2]], I), rand(2, 5, 3)])
    case("scatter_nd_elements", "ScatterND", [rand(4, 5), Const([[0, 1], [3, 4], [2, 0]], I), rand(3)])
    case("scatter_nd_add", "ScatterND", [rand(4, 5), Const([[1], [1]], I), rand(2, 5)], reduction="add")
    case("scatter_elements", "ScatterElements", [rand(4, 5), Const([[0, 2, 1], [3, 0, 2]], I), rand(2, 3)], axis=0)
    for upper in (0, 1):
        case(f"trilu_{upper}", "Trilu", [rand(2, 5, 7)], upper=upper)
        case(f"trilu_{upper}_k", "Trilu", [rand(5, 7), Const(1 if upper else -2, I)], upper=upper)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            case(f"cumsum_{exclusive}{reverse}", "CumSum", [rand(3, 9), Const(1, I)], exclusive=exclusive, reverse=reverse)
    case("tile", "Tile", [rand(2, 3), Const([2, 3], I)])
    for what, equation, a, b in [("matmul", "ij,jk->ik", (3, 4), (4, 5)), ("batch", "bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
                                 ("attention", "bhid,bhjd->bhij", (1, 2, 5, 4), (1, 2, 6, 4)), ("outer", "i,j->ij", (3,), (4,)),
                                 ("ellipsis", "...ij,jk->...ik", (2, 3, 4), (4, 5)), ("dot", "i,i->", (5,), (5,)),
                                 ("permuted", "bthd,bshd->bhts", (1, 5, 2, 4), (1, 6, 2, 4))]:
        case(f"einsum_{what}", "Einsum", [rand(*a), rand(*b)], equation=equation)
    case("einsum_transpose", "Einsum", [rand(3, 4, 5)], equation="ijk->kij")
    case("einsum_sum", "Einsum", [rand(3, 4)], equation="ij->i")
    for op in ["ArgMax", "ArgMin"]:
        for last in (0, 1):
            case(f"{op.lower()}_last{last}", op, [np.round(rand(3, 7, 4, low=0, high=3)).astype(F)], axis=1, keepdims=last,
                 select_last_index=last)
    for op in ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"]:
        case(f"{op.lower()}_axes", op, [rand(2, 3, 5, 7)], axes=[1, -1], keepdims=0)
        case(f"{op.lower()}_all", op, [rand(2, 3, 5)])
    case("reduce_sum_axes", "ReduceSum", [rand(2, 3, 5, 7), Const([1, -1], I)], keepdims=0)
    case("reduce_sum_all", "ReduceSum", [rand(2, 3, 5)])
    case("reduce_sum_noop", "ReduceSum", [rand(2, 3, 5)], noop_with_empty_axes=1)
    case("reduce_sum_int64", "ReduceSum", [rand(2, 7, low=-9, high=9, dtype=I), Const([1], I)])
    for largest in (0, 1):
        case(f"topk_{largest}", "TopK", [rand(3, 11, 2), Const([4], I)], outputs=2, axis=1, largest=largest)
    case("one_hot", "OneHot", [rand(2, 3, low=-5, high=5, dtype=I), Const(5, I), Const([0.0, 1.0], F)])
    case("one_hot_axis", "OneHot", [rand(2, 3, low=0, high=5, dtype=I), Const(5, I), Const([-1.0, 2.0], F)], axis=1)
    case("mod_int64", "Mod", [rand(3, 4, low=-9, high=9, dtype=I), Const([2, -3, 4, 5], I)])
    case("mod_fmod", "Mod", [rand(3, 4, low=-9, high=9), Const([2, -3, 4, 5], F)], fmod=1)
    case("size", "Size", [rand(2, 3, 4)])


def further():
    """The operators above on more shapes and attributes: three cases of each at least."""
    unary = {"Relu": (-6, 6), "Sigmoid": (-20, 20), "HardSwish": (-6, 6), "Tanh": (-9, 9), "Softplus": (-30, 30), "Elu": (-4, 4),
             "Erf": (-4, 4), "Neg": (-3, 3), "Exp": (-20, 10), "Cos": (-20, 20), "Sin": (-20, 20), "Abs": (-3, 3), "Floor": (-9, 9),
             "Ceil": (-9, 9), "Sign": (-1, 1), "Round": (-9, 9), "Sqrt": (0, 100), "Log": (0.01, 100), "Reciprocal": (0.01, 9),
             "LeakyRelu": (-3, 3), "HardSigmoid": (-6, 6), "Identity": (-1, 1)}
    for op, (low, high) in unary.items():
        for what, shape in [("image", (1, 5, 9, 7)), ("long", (1031,)), ("scalar", ())]:
            case(f"{op.lower()}_{what}", op, [rand(*shape, low=low, high=high)])
    for op in ["Neg", "Abs", "Sign", "Identity"]:
        case(f"{op.lower()}_int64", op, [rand(3, 7, low=-9, high=9, dtype=I)])
    case("round_halves", "Round", [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5], F)])
    case("erf_special", "Erf", [np.array([0.0, -0.0, np.inf, -np.inf, 1e-8, 40.0], F)])
    case("exp_special", "Exp", [np.array([0.0, -np.inf, -200.0, 88.0, -87.0, 1e-8], F)])
    case("log_special", "Log", [np.array([1.0, 1e-30, 1e30, np.inf, 2.0], F)])
    for shape in [(17,), (2, 3, 5, 7)]:
        case(f"gelu_{len(shape)}d", "Gelu", [rand(*shape, low=-4, high=4)], opset=20)
        case(f"not_{len(shape)}d", "Not", [rand(*shape, dtype=B)])
        values = rand(*shape).copy()
        values.flat[::3], values.flat[1::5] = np.nan, np.inf
        case(f"isnan_{len(shape)}d", "IsNaN", [values])
        case(f"isinf_{len(shape)}d", "IsInf", [values])
    case("isinf_positive", "IsInf", [np.array([1.0, np.nan, np.inf, -np.inf], F)], detect_negative=0)
    for op in ["And", "Or", "Xor"]:
        case(f"{op.lower()}_outer", op, [rand(3, 1, dtype=B), rand(1, 5, dtype=B)])
        case(f"{op.lower()}_same", op, [rand(2, 3, 4, dtype=B), rand(2, 3, 4, dtype=B)])
    for op in ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]:
        case(f"{op.lower()}_outer", op, [rand(5, 1, low=0, high=4, dtype=np.int32), rand(1, 6, low=0, high=4, dtype=np.int32)])
        case(f"{op.lower()}_nan", op, [np.array([1, np.nan, 2, np.inf], F), np.array([1, 1, np.nan, np.inf], F)])
    for op in ["Max", "Min", "Sum", "Mean"]:
        case(f"{op.lower()}_two", op, [rand(2, 1, 5), rand(3, 1)])
        case(f"{op.lower()}_alone", op, [rand(2, 7)])
    case("max_nan", "Max", [np.array([1, np.nan, 2], F), np.array([np.nan, 1, 3], F)])
    case("min_int64", "Min", [rand(3, 4, low=-5, high=5, dtype=I), rand(4, low=-5, high=5, dtype=I)])
    for what, a, b in [("same", (3, 7), (3, 7)), ("outer", (5, 1), (1, 6))]:
        case(f"mod_{what}", "Mod", [rand(*a, low=-20, high=20, dtype=I), rand(*b, low=1, high=7, dtype=I)])
        case(f"pow_{what}", "Pow", [rand(*a, low=0.2, high=3), rand(*b, low=-2, high=2)])
        case(f"where_{what}", "Where", [rand(*a, dtype=B), rand(*b), rand(*a)])
    case("where_int64", "Where", [rand(3, 4, dtype=B), rand(3, 4, low=-5, high=5, dtype=I), rand(4, low=-5, high=5, dtype=I)])

    for what, attributes in [("value", {"value": numpy_helper.from_array(np.arange(6, dtype=F).reshape(2, 3))}),
                             ("float", {"value_float": 1.5}), ("floats", {"value_floats": [1.0, -2.0]}), ("int", {"value_int": 7}),
                             ("ints", {"value_ints": [3, 1, 4]})]:
        case(f"constant_{what}", "Constant", [], **attributes)
    case("constant_of_shape_default", "ConstantOfShape", [Const([2, 1, 4], I)])
    case("constant_of_shape_int64", "ConstantOfShape", [Const([5], I)], value=numpy_helper.from_array(np.array([-3], I)))
    case("constant_of_shape_bool", "ConstantOfShape", [Const([2, 2], I)], value=numpy_helper.from_array(np.array([True])))
    case("nonzero", "NonZero", [Const(np.array([[0, 2, 0], [1, 0, 3]], F))])
    case("nonzero_bool", "NonZero", [Const(np.array([True, False, True, True]))])
    case("nonzero_int64", "NonZero", [Const(np.arange(8).reshape(2, 2, 2) % 3, I)])
    case("range_down", "Range", [Const(9, I), Const(0, I), Const(-2, I)])
    case("range_int32", "Range", [Const(0, np.int32), Const(5, np.int32), Const(1, np.int32)])
    case("size_scalar", "Size", [rand()])
    case("size_matrix", "Size", [rand(5, 3)])
    case("shape_scalar", "Shape", [rand()])
    case("shape_negative", "Shape", [rand(2, 3, 4, 5)], start=-2)
    case("expand_rank", "Expand", [rand(3), Const([2, 1, 3], I)])
    case("expand_both", "Expand", [rand(3, 1, 5), Const([4, 1], I)])
    case("expand_int64", "Expand", [rand(1, 4, low=0, high=9, dtype=I), Const([3, 4], I)])
    case("tile_three", "Tile", [rand(2, 1, 3), Const([1, 3, 2], I)])
    case("tile_vector", "Tile", [rand(5), Const([3], I)])
    case("tile_int64", "Tile", [rand(2, 3, low=0, high=9, dtype=I), Const([1, 2], I)])
    case("split_opset18", "Split", [rand(2, 7)], outputs=3, opset=18, axis=1, num_outputs=3)
    case("split_int64", "Split", [rand(6, 2, low=-9, high=9, dtype=I)], outputs=2, axis=0)
    case("concat_int64", "Concat", [rand(2, low=0, high=9, dtype=I), rand(3, low=0, high=9, dtype=I)], axis=0)
    case("transpose_int64", "Transpose", [rand(3, 4, low=0, high=9, dtype=I)])
    case("transpose_five", "Transpose", [rand(2, 3, 2, 4, 3)], perm=[0, 3, 1, 4, 2])
    case("slice_int64", "Slice", [rand(9, low=0, high=9, dtype=I), Const([2], I), Const([7], I)])
    case("slice_int32", "Slice", [rand(4, 6), Const([1], np.int32), Const([3], np.int32), Const([1], np.int32)])
    case("slice_backwards_steps", "Slice", [rand(3, 10), Const([8], I), Const([0], I), Const([1], I), Const([-3], I)])
    case("gather_three", "Gather", [rand(4, 5, 6), rand(2, 3, low=-5, high=5, dtype=I)], axis=1)
    case("gather_int64_table", "Gather", [rand(7, low=0, high=99, dtype=I), rand(2, 2, low=0, high=7, dtype=I)])
    case("gather_nd_pixels", "GatherND", [rand(2, 6, 5, 4), rand(2, 3, 2, low=0, high=5, dtype=I)], batch_dims=1)
    case("gather_nd_negative", "GatherND", [rand(3, 4), rand(5, 2, low=-3, high=0, dtype=I)])
    case("gather_elements_last", "GatherElements", [rand(3, 4, 5), rand(3, 4, 2, low=0, high=5, dtype=I)], axis=-1)
    case("gather_elements_middle", "GatherElements", [rand(2, 7, 3), rand(2, 4, 3, low=0, high=7, dtype=I)], axis=1)
    case("scatter_nd_negative", "ScatterND", [rand(5, 3), Const([[-1], [1]], I), rand(2, 3)])
    case("scatter_nd_dynamic", "ScatterND", [rand(6, 3), np.array([[4], [0], [2]], I), rand(3, 3)])
    case("scatter_nd_max", "ScatterND", [rand(4, 5), Const([[1], [1], [3]], I), rand(3, 5)], opset=18, reduction="max")
    case("scatter_elements_last", "ScatterElements", [rand(3, 6), Const([[0, 5], [1, 2], [3, 4]], I), rand(3, 2)], axis=-1)
    case("scatter_elements_add", "ScatterElements", [rand(3, 4), Const([[0, 0], [1, 2], [3, 3]], I), rand(3, 2)], axis=1,
         reduction="add")
    for what, shape, k in [("wide", (3, 8), 2), ("tall", (8, 3), -2), ("batch", (2, 2, 4, 4), 0)]:
        for upper in (0, 1):
            case(f"trilu_{what}_{upper}", "Trilu", [rand(*shape), Const(k, I)], upper=upper)
    case("cumsum_first", "CumSum", [rand(5, 3, 2), Const(0, I)])
    case("cumsum_negative", "CumSum", [rand(2, 3, 6), Const(-1, np.int32)])
    case("cumsum_int64", "CumSum", [rand(9, low=-5, high=5, dtype=I), Const(0, I)])
    ellipsis = [("ellipsis_both", "...ij,...jk->...ik", (2, 5, 3, 4), (2, 5, 4, 2)), ("ellipsis_implicit", "...i,...i", (3, 4), (3, 4)),
                ("ellipsis_front", "i...,i...->...", (3, 2, 5), (3, 2, 5)), ("ellipsis_middle", "a...b,b->a...", (2, 3, 4, 5), (5,)),
                ("ellipsis_empty", "...ij,jk->...ik", (3, 4), (4, 5)), ("implicit", "ij,jk", (3, 4), (4, 5)),
                ("broadcast_one", "bij,bjk->bik", (1, 3, 4), (2, 4, 5))]
    for what, equation, a, b in ellipsis:
        case(f"einsum_{what}", "Einsum", [rand(*a), rand(*b)], equation=equation)
    case("einsum_three", "Einsum", [rand(2, 3), rand(3, 4), rand(4, 5)], equation="ab,bc,cd->ad")
    case("einsum_diagonal", "Einsum", [rand(4, 4)], equation="ii->i")
    case("einsum_trace", "Einsum", [rand(2, 4, 4)], equation="...ii->...")
    case("einsum_hadamard", "Einsum", [rand(3, 4), rand(3, 4)], equation="ij,ij->ij")
    for op in ["ArgMax", "ArgMin"]:
        case(f"{op.lower()}_default", op, [rand(3, 7)])
        case(f"{op.lower()}_flat", op, [rand(2, 3, 9)], axis=-1, keepdims=0)
    for op in ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"]:
        case(f"{op.lower()}_keep", op, [rand(3, 4, 5, low=0.1, high=2)], axes=[0], keepdims=1)
        case(f"{op.lower()}_last", op, [rand(3, 4, 65, low=0.5, high=1.1)], axes=[2], keepdims=0)
        case(f"{op.lower()}_opset18", op, [rand(3, 4, 5, low=0.1, high=2), Const([0, 2], I)], opset=18)
    case("reduce_max_int64", "ReduceMax", [rand(3, 5, low=-9, high=9, dtype=I)], axes=[1])
    case("reduce_mean_noop", "ReduceMean", [rand(2, 3, 5)], opset=18, noop_with_empty_axes=1)
    case("reduce_sum_last", "ReduceSum", [rand(5, 1000), Const([1], I)])
    for what, shape, k, axis in [("last", (4, 9), 3, -1), ("first", (6, 2, 3), 1, 0), ("whole", (5, 4), 4, 1)]:
        case(f"topk_{what}", "TopK", [rand(*shape), Const([k], I)], outputs=2, axis=axis)
    case("one_hot_first", "OneHot", [rand(4, low=0, high=6, dtype=I), Const(6, I), Const([0.0, 3.0], F)], axis=0)
    case("one_hot_int64", "OneHot", [rand(3, low=0, high=4, dtype=I), Const(4, I), Const([2, 5], I)])

    for what, shape in [("image", (1, 3, 17, 5)), ("deep", (2, 37, 4, 4)), ("3d", (1, 2, 3, 4, 5))]:
        case(f"global_average_pool_{what}", "GlobalAveragePool", [rand(*shape)])
        case(f"global_max_pool_{what}", "GlobalMaxPool", [rand(*shape)])
    case("instance_normalization_3d", "InstanceNormalization", [rand(1, 4, 3, 5, 2), Const(rand(4)), Const(rand(4))])
    case("lrn_wide", "LRN", [rand(2, 6, 3, 3)], size=7, alpha=0.5, beta=0.5, bias=2.0)
    case("dropout_opset7", "Dropout", [rand(2, 5)], opset=7, ratio=0.4)
    case("leaky_relu_one", "LeakyRelu", [rand(9)], alpha=1.5)
    case("prelu_tensor", "PRelu", [rand(2, 3, 4), Const(rand(3, 4))])
    case("prelu_last", "PRelu", [rand(2, 3, 4), rand(4)])
    case("depth_to_space_three", "DepthToSpace", [rand(2, 18, 2, 3)], blocksize=3)
    case("space_to_depth_three", "SpaceToDepth", [rand(2, 2, 6, 9)], blocksize=3)
    case("space_to_depth_deep", "SpaceToDepth", [rand(1, 5, 8, 4)], blocksize=4)
    case("layer_normalization_two_outputs", "LayerNormalization", [rand(3, 20, high=3), Const(rand(20))], outputs=2)
    case("layer_normalization_axis_all", "LayerNormalization", [rand(2, 5, 6), Const(rand(5, 6)), Const(rand(5, 6))], outputs=3, axis=1)
    case("resize_scales_many", "Resize", [rand(1, 2, 7, 9), None, Const([1, 1, 1.7, 0.6], F)], mode="linear",
         coordinate_transformation_mode="asymmetric")
    case("resize_channels_kept", "Resize", [rand(2, 3, 4), None, Const([1, 1, 2.5], F)], mode="linear")
    case("resize_opset18_axes", "Resize", [rand(1, 2, 4, 4), None, None, Const([6, 7], I)], opset=18, mode="linear", axes=[2, 3])
    case("pad_reflect_one_side", "Pad", [rand(6, 7), Const([3, 0, 0, 5], I)], mode="reflect")
    case("pad_edge_three", "Pad", [rand(2, 3, 4), Const([1, 0, 2, 0, 2, 1], I)], mode="edge")
    case("pad_wrap", "Pad", [rand(4, 5), Const([1, 2, 3, 0], I)], opset=19, mode="wrap")
    case("pad_int64", "Pad", [rand(3, 4, low=0, high=9, dtype=I), Const([0, 1, 1, 0], I), Const(-7, I)])
    case("conv_wide", "Conv", [rand(1, 32, 10, 10), Const(rand(48, 32, 3, 3)), Const(rand(48))], pads=[1, 1, 1, 1], rtol=1e-3)
    case("conv_batch", "Conv", [rand(3, 5, 7, 6), Const(rand(7, 5, 2, 3))], strides=[1, 2])
    case("conv_groups_one_dimension", "Conv", [rand(2, 6, 15), Const(rand(9, 2, 3)), Const(rand(9))], group=3, pads=[1, 1])
    case("conv_depthwise_dilated", "Conv", [rand(1, 7, 11, 9), Const(rand(7, 1, 3, 3))], group=7, dilations=[2, 2], pads=[2, 2, 2, 2])
    case("conv_transpose_same_upper", "ConvTranspose", [rand(1, 2, 4, 5), Const(rand(2, 3, 3, 3))], strides=[2, 2], auto_pad="SAME_UPPER")
    case("conv_transpose_three_dimensions", "ConvTranspose", [rand(1, 2, 3, 2, 3), Const(rand(2, 2, 2, 2, 2))], strides=[2, 1, 2])
    case("matmul_large", "MatMul", [rand(33, 129), rand(129, 65)], rtol=1e-3)
    case("matmul_attention_wide", "MatMul", [rand(2, 3, 17, 33), rand(2, 3, 33, 19)])
    case("matmul_mixed_batch", "MatMul", [rand(4, 1, 3, 5), rand(2, 5, 6)])


def make_model(c):
    names, inputs, initializers = [], [], []
    feeds = {}
    for i, value in enumerate(c.inputs):
        name = f"in{i}"
        if value is None:
            names.append("")
        elif isinstance(value, Const):
            names.append(name)
            initializers.append(numpy_helper.from_array(value.value, name))
        else:
            names.append(name)
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
            feeds[name] = value
    outputs = [f"out{i}" for i in range(c.outputs)]
    node = helper.make_node(c.op, names, outputs, name=c.name, **c.attributes)
    graph = helper.make_graph([node], c.name, inputs, [onnx.ValueInfoProto(name=o) for o in outputs], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", c.opset)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    # Indices stay in range when inputs are made up.
    domains = {f"domain.{name}": f"int[{int(value.min())},{int(value.max()) + 1})" for name, value in feeds.items()
               if np.issubdtype(value.dtype, np.integer) and value.size}
    if domains:
        helper.set_model_props(model, domains)
    return model, feeds


def write(c, folder):
    """One entry of the index."""
    model, feeds = c.model()
    where = os.path.join(folder, c.name)
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, "model.onnx")
    onnx.save(model, path)
    session = reference.open_session(path, threads=1)
    outputs = session.run(None, feeds)
    entry = {"name": c.name, "op": c.op, "model": f"{c.name}/model.onnx", "inputs": {}, "outputs": {}, "rtol": c.rtol,
             "atol": c.atol}
    for kind, arrays in [("inputs", feeds), ("outputs", dict(zip([o.name for o in session.get_outputs()], outputs)))]:
        for name, value in arrays.items():
            file = f"{c.name}/{kind[:-1]}_{name}.npy"
            np.save(os.path.join(folder, file), value)
            entry[kind][name] = file
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="DIR")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--list", action="store_true", help="print the cases and write nothing")
    args = parser.parse_args()
    for group in (group1, group2, group3, further):
        group()
    for op, number, model, feeds in random_programs.programs():
        CASES.append(Program(f"random_{op.lower()}_{number}", op, model, feeds))
    cases = [c for c in CASES if re.search(args.filter, c.name)]
    if args.list:
        for c in cases:
            print(f"{c.name} {c.op}")
        return 0
    if not args.output:
        parser.error("-o DIR is needed")
    index, refused = [], 0
    for c in cases:
        try:
            index.append(write(c, args.output))
        except Exception as error:                            # any refusal by the checker or by ONNX Runtime
            refused += 1
            print(f"make_op_cases.py: {c.name}: {str(error).splitlines()[0]}", file=sys.stderr)
    with open(os.path.join(args.output, "index.json"), "w") as file:
        json.dump(index, file, indent=1)
    print(f"{len(index)} cases of {len({e['op'] for e in index})} operators in {args.output}, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
