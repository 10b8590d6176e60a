"""A case of one operator, as the peers see it that do not read ONNX."""
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


def as_quantised_torch(path, values):
    """A function that runs one MatMulInteger or QLinearConv, channels last, by constant int8 on uint8, its result requantised, by
    the engine that is set."""
    import torch as t
    graph = onnx.load(path).graph
    [node] = [n for n in graph.node if n.op_type != "Transpose"]
    shape, w = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim], _weights(graph)["w"]
    if node.op_type == "MatMulInteger":
        w = w.T
    scales, zeros = t.full((w.shape[0],), 0.01), t.zeros(w.shape[0], dtype=t.int64)
    weight = t.quantize_per_channel(t.from_numpy(w.astype(np.float32) * 0.01), scales, zeros, 0, t.qint8)
    bytes_ = t.from_numpy(values(shape, "uint8"))
    if node.op_type == "MatMulInteger":
        x = t._make_per_tensor_quantized_tensor(bytes_, 0.02, 0)
        packed = t.ops.quantized.linear_prepack(weight, None)
        return lambda: t.ops.quantized.linear(x, packed, 0.05, 0)
    a = _attributes(node)
    x = t._make_per_tensor_quantized_tensor(bytes_, 0.02, 0).permute(0, 3, 1, 2)
    packed = t.ops.quantized.conv2d_prepack(weight, None, [1, 1], a["pads"][:2], [1, 1], 1)
    return lambda: t.ops.quantized.conv2d(x, packed, 0.05, 0)
