"""A case of one operator, as the peers see it that do not read ONNX."""
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def _attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def _weights(graph):
    return {t.name: numpy_helper.to_array(t) for t in graph.initializer}


def weights_of_products(path):
    """([weights of each product of a chain], rows of the input)."""
    graph = onnx.load(path).graph
    weights = _weights(graph)
    if any(node.op_type != "MatMul" for node in graph.node):
        raise ValueError("not a chain of products")
    return [weights[node.input[1]] for node in graph.node], graph.input[0].type.tensor_type.shape.dim[0].dim_value


def as_torch(path):
    """(module, shape of its input): a chain of products, convolutions, poolings, softmaxes and layer norms."""
    import torch
    from torch import nn
    graph = onnx.load(path).graph
    weights, layers = _weights(graph), []
    for node in graph.node:
        a = _attributes(node)
        if node.op_type == "MatMul":
            w = weights[node.input[1]]
            layer = nn.Linear(w.shape[0], w.shape[1], bias=False)
            layer.weight.data = torch.from_numpy(np.ascontiguousarray(w.T))
        elif node.op_type == "Conv":
            w = weights[node.input[1]]
            layer = nn.Conv2d(w.shape[1] * a["group"], w.shape[0], w.shape[2:], a["strides"], a["pads"][:2], a["dilations"], a["group"],
                              bias=len(node.input) > 2)
            if a["pads"][:2] != a["pads"][2:]:
                layer = nn.Sequential(nn.ZeroPad2d((a["pads"][1], a["pads"][3], a["pads"][0], a["pads"][2])), layer)
                layer[1].padding = (0, 0)
            conv = layer[1] if isinstance(layer, nn.Sequential) else layer
            conv.weight.data = torch.from_numpy(w.copy())
            if len(node.input) > 2:
                conv.bias.data = torch.from_numpy(weights[node.input[2]].copy())
        elif node.op_type == "Relu":
            layer = nn.ReLU()
        elif node.op_type == "MaxPool":
            layer = nn.MaxPool2d(a["kernel_shape"], a["strides"], a["pads"][:2])
        elif node.op_type == "Softmax":
            layer = nn.Softmax(a.get("axis", -1))
        elif node.op_type == "LayerNormalization":
            layer = nn.LayerNorm(weights[node.input[1]].shape)
        else:
            raise ValueError(f"{node.op_type}: not an operator of this comparison")
        layers.append(layer)
    shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
    return nn.Sequential(*layers), shape


def _byte_products(t, w, bytes_):
    """With results of four bytes, as MatMulInteger has them."""
    columns = w.shape[1]
    packed = t.ops.onednn.qlinear_prepack(t.from_numpy(np.ascontiguousarray(w.T)), list(bytes_.shape))
    scales, zeros = t.full((columns,), 0.01), t.zeros(columns, dtype=t.int64)
    yield lambda: t.ops.onednn.qlinear_pointwise(bytes_, 0.02, 0, packed, scales, zeros, None, 1.0, 0, t.float32, "none", [], "")
    x, matrix = bytes_.to(t.int8), t.from_numpy(np.ascontiguousarray(w.T)).t()
    yield lambda: t._int_mm(x, matrix)


def _byte_convolutions(t, w, bytes_, pads):
    """Requantised, by each engine of PyTorch's that takes it."""
    scales, zeros = t.full((w.shape[0],), 0.01), t.zeros(w.shape[0], dtype=t.int64)
    weight = t.quantize_per_channel(t.from_numpy(w.astype(np.float32) * 0.01), scales, zeros, 0, t.qint8)
    x = t._make_per_tensor_quantized_tensor(bytes_, 0.02, 0).permute(0, 3, 1, 2)
    for engine in t.backends.quantized.supported_engines:
        t.backends.quantized.engine = engine
        try:
            packed = t.ops.quantized.conv2d_prepack(weight, None, [1, 1], pads, [1, 1], 1)
            t.ops.quantized.conv2d(x, packed, 0.05, 0)
            yield lambda packed=packed: t.ops.quantized.conv2d(x, packed, 0.05, 0)
        except RuntimeError as error:
            print(f"{engine}: {error}", file=sys.stderr)


def as_quantised_torch(path, values):
    """Functions that run one MatMulInteger, or QLinearConv with channels last, of uint8 by constant int8: the ways PyTorch has."""
    import torch as t
    graph = onnx.load(path).graph
    [node] = [n for n in graph.node if n.op_type != "Transpose"]
    bytes_ = t.from_numpy(values([d.dim_value for d in graph.input[0].type.tensor_type.shape.dim], "uint8"))
    w = _weights(graph)["w"]
    return _byte_products(t, w, bytes_) if node.op_type == "MatMulInteger" else _byte_convolutions(t, w, bytes_, _attributes(node)["pads"][:2])
