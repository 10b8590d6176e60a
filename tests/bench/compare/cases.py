"""The cases of a comparison as ONNX files, one JSON line each: name, group, path, flop, bytes (the least that has to move),
repeat (how often the file repeats the operator, so that short ones are not lost in the call), peers that take it.

    cases.py FOLDER-OF-MODELS FOLDER-TO-WRITE-TO GROUP...
"""
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

MODELS = ["mlp", "resnet18", "resnet50", "mobilenetv2", "bert_base"]
ALL_PEERS = ["onnxruntime", "openvino", "torch", "tvm"]
models, work = sys.argv[1], sys.argv[2]
rng = np.random.default_rng(7)


def emit(name, group, path, flop=0, size=0, repeat=1, peers=ALL_PEERS):
    print(json.dumps({"name": name, "group": group, "path": path, "flop": flop, "bytes": size, "repeat": repeat, "peers": peers}))


def save(name, nodes, weights, x, y):
    """A model of one input x and one output y; returns its path."""
    tensors = [numpy_helper.from_array(np.asarray(value, np.float32), key) for key, value in weights.items()]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = os.path.join(work, name + ".onnx")
    onnx.save(model, path)
    return path


def values(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]))


def chain(m, sizes):
    """x (m, sizes[0]) times constant matrices, one after the other."""
    nodes, weights, last = [], {}, "x"
    for i, (k, n) in enumerate(zip(sizes, sizes[1:])):
        out = "y" if i == len(sizes) - 2 else f"t{i}"
        weights[f"w{i}"] = values(k, n)
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [out]))
        last = out
    return nodes, weights


def product(m, n, k):
    # Squares follow one another, so that a kernel of a microsecond is timed with others of its kind.
    repeat = max(1, min(8, int(3e7 / (2 * m * n * k)))) if n == k else 1
    name = f"product_{m}x{n}x{k}"
    nodes, weights = chain(m, [k] + [n] * repeat)
    path = save(name, nodes, weights, [m, k], [m, n])
    emit(name, "products", path, 2 * m * n * k, 4 * (m * n + m * k + n * k), repeat, ALL_PEERS + ["openblas"])


def products():
    for n in (64, 128, 256, 512, 768, 1000, 1001, 1024, 1536, 2048, 3072, 4096):
        product(n, n, n)
    for m in (1, 4, 16, 128, 512):
        for n, k in ((768, 768), (3072, 768), (768, 3072)):
            product(m, n, k)
    for m in (1, 4, 7, 16, 128):
        for n, k in ((1000, 512), (1001, 768), (768, 1001)):
            product(m, n, k)


def convolution(c, h, w, oc, kernel, stride=1, pad=None, dilation=1, groups=1):
    pads = list(pad) if isinstance(pad, (list, tuple)) else [pad if pad is not None else dilation * (kernel // 2)] * 4
    oh = (h + pads[0] + pads[2] - dilation * (kernel - 1) - 1) // stride + 1
    ow = (w + pads[1] + pads[3] - dilation * (kernel - 1) - 1) // stride + 1
    kind = "depthwise" if groups == c and groups > 1 else f"g{groups}" if groups > 1 else "conv"
    name = f"{kind}_{kernel}x{kernel}_s{stride}{f'_d{dilation}' if dilation > 1 else ''}_{h}x{w}x{c}_to_{oc}"
    node = helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=pads, dilations=[dilation] * 2, group=groups,
                            kernel_shape=[kernel] * 2)
    weights = {"w": values(oc, c // groups, kernel, kernel), "b": values(oc)}
    path = save(name, [node, helper.make_node("Relu", ["c"], ["y"])], weights, [1, c, h, w], [1, oc, oh, ow])
    emit(name, "convolutions", path, 2 * oh * ow * oc * (c // groups) * kernel * kernel,
         4 * (c * h * w + oc * oh * ow + weights["w"].size))


def layers_of(model):
    """The distinct convolutions of a model, as arguments of convolution()."""
    proto = shape_inference.infer_shapes(onnx.load(os.path.join(models, model + ".onnx")))
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
              for v in [*proto.graph.value_info, *proto.graph.input, *proto.graph.output]}
    weights = {t.name: list(t.dims) for t in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type != "Conv":
            continue
        a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
        _, c, h, w = shapes[node.input[0]]
        oc, _, kernel, _ = weights[node.input[1]]
        yield c, h, w, oc, kernel, a.get("strides", [1])[0], tuple(a.get("pads", [0] * 4)), a.get("dilations", [1])[0], a.get("group", 1)


def convolutions():
    seen = set()
    for model in ("resnet18", "resnet50", "mobilenetv2"):
        for layer in layers_of(model):
            if layer not in seen:
                seen.add(layer)
                convolution(*layer)
    for layer in ((64, 56, 56, 64, 5), (48, 28, 28, 96, 5, 2), (16, 57, 57, 32, 7), (3, 225, 225, 48, 7, 2), (32, 112, 112, 64, 7, 4),
                  (64, 56, 56, 128, 3, 2), (96, 27, 27, 160, 3, 2), (128, 28, 28, 128, 3, 1, None, 2), (256, 14, 14, 256, 3, 1, None, 4),
                  (64, 56, 56, 64, 3, 1, None, 1, 2), (128, 28, 28, 128, 3, 1, None, 1, 4), (256, 14, 14, 256, 3, 1, None, 1, 8),
                  (64, 56, 56, 64, 1, 1, None, 1, 8), (240, 28, 28, 240, 1, 1, None, 1, 3), (128, 56, 56, 128, 3, 1, None, 1, 32),
                  (128, 28, 28, 256, 3, 2, None, 1, 32), (512, 7, 7, 512, 3, 1, None, 1, 32), (72, 56, 56, 72, 5, 2, None, 1, 72),
                  (120, 28, 28, 120, 5, 1, None, 1, 120), (33, 61, 61, 33, 3, 1, None, 1, 33), (96, 112, 112, 96, 3, 2, None, 1, 96),
                  (3, 224, 224, 16, 1), (24, 56, 56, 144, 1), (1024, 14, 14, 255, 1), (2048, 7, 7, 512, 1), (17, 31, 31, 19, 3),
                  (320, 8, 8, 1280, 1)):
        convolution(*layer)


def rows():
    for c, h in ((64, 112), (192, 56), (480, 28)):
        name = f"maxpool_3x3_s2_{h}x{h}x{c}"
        out = (h - 1) // 2 + 1
        node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        emit(name, "rows", save(name, [node], {}, [1, c, h, h], [1, c, out, out]), 0, 4 * c * (h * h + out * out))
    for name, shape, order in (("rows", (1, 1024, 768), (0, 2, 1)), ("heads", (1, 128, 12, 64), (0, 2, 1, 3)),
                               ("channels_last", (1, 64, 56, 56), (0, 2, 3, 1))):
        name = f"transpose_{name}_{'x'.join(map(str, shape))}"
        node = helper.make_node("Transpose", ["x"], ["y"], perm=order)
        path = save(name, [node], {}, shape, [shape[i] for i in order])
        emit(name, "rows", path, 0, 8 * int(np.prod(shape)), peers=["onnxruntime", "openvino"])
    for m, n in ((1536, 128), (6144, 512), (1024, 1000), (4096, 4096)):
        name = f"softmax_{m}x{n}"
        emit(name, "rows", save(name, [helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {}, [m, n], [m, n]), 0, 8 * m * n)
    for m, n in ((128, 768), (4096, 1024), (512, 3072)):
        name = f"layer_norm_{m}x{n}"
        node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)
        emit(name, "rows", save(name, [node], {"s": values(n), "b": values(n)}, [m, n], [m, n]), 0, 8 * m * n)


def byte_product(m, n, k):
    """uint8 times constant int8, summed in int32."""
    name = f"int8_product_{m}x{n}x{k}"
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], name,
                              [helper.make_tensor_value_info("x", TensorProto.UINT8, [m, k])],
                              [helper.make_tensor_value_info("y", TensorProto.INT32, [m, n])],
                              [numpy_helper.from_array(rng.integers(-127, 128, (k, n)).astype(np.int8), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = os.path.join(work, name + ".onnx")
    onnx.save(model, path)
    emit(name, "integers", path, 2 * m * n * k, 4 * m * n + m * k + n * k, 1, ["onnxruntime", "torch-int8"])


def channels_last(name, node, x, y, dtype, constants):
    """A convolution whose image and result have their channels last, as kernels of peers want them; returns the model's path."""
    nodes = [helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2]), node,
             helper.make_node("Transpose", ["y"], ["result"], perm=[0, 2, 3, 1])]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("image", dtype, x)],
                              [helper.make_tensor_value_info("result", dtype, y)],
                              [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = os.path.join(work, name + ".onnx")
    onnx.save(model, path)
    return path


def byte_convolution(c, h, oc, kernel):
    """uint8 by constant int8, requantised to uint8, and the same in float32."""
    size = f"{kernel}x{kernel}_{h}x{h}x{c}_to_{oc}"
    window = {"pads": [kernel // 2] * 4, "kernel_shape": [kernel] * 2}
    weight = rng.integers(-127, 128, (oc, c, kernel, kernel)).astype(np.int8)
    constants = {"s": np.float32(0.02), "z": np.uint8(0), "w": weight, "t": np.full(oc, 0.01, np.float32),
                 "o": np.zeros(oc, np.int8), "u": np.float32(0.05)}
    flop, elements = 2 * h * h * oc * c * kernel * kernel, h * h * (c + oc) + weight.size
    node = helper.make_node("QLinearConv", ["x", "s", "z", "w", "t", "o", "u", "z"], ["y"], **window)
    path = channels_last("int8_conv_" + size, node, [1, h, h, c], [1, h, h, oc], TensorProto.UINT8, constants)
    emit("int8_conv_" + size, "integers", path, flop, elements, 1, ["onnxruntime", "torch-int8"])
    node = helper.make_node("Conv", ["x", "w"], ["y"], **window)
    path = channels_last("f32_conv_" + size, node, [1, h, h, c], [1, h, h, oc], TensorProto.FLOAT, {"w": values(*weight.shape).astype(np.float32)})
    emit("f32_conv_" + size, "integers", path, flop, 4 * elements, 1, ["onnxruntime", "openvino"])


def integers():
    """Each with the same in float32 after it."""
    for n in (256, 512, 1024, 2048):
        byte_product(n, n, n)
        product(n, n, n)
    for c, h in ((64, 56), (128, 28), (256, 14), (512, 7)):
        byte_convolution(c, h, c, 3)


def whole(path):
    emit(os.path.splitext(os.path.basename(path))[0], "models", path, peers=["onnxruntime", "openvino", "tvm"])


GROUPS = {"products": products, "convolutions": convolutions, "rows": rows, "integers": integers,
          "models": lambda: [whole(os.path.join(models, m + ".onnx")) for m in MODELS]}
for group in sys.argv[3:]:
    if group in GROUPS:
        GROUPS[group]()
    elif os.path.exists(group):
        whole(group)
    else:
        sys.exit(f"tests/bench/compare/cases.py: {group}: neither a group ({', '.join(GROUPS)}) nor a file")
