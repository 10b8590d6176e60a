#!/usr/bin/env python3
"""Writes the models that Hone is tuned and tested on: ONNX, opset 17, batch 1, seeded random weights, no download.

    make_models.py NAME... -o DIR [--seed S] [--check]

Names: mlp, resnet18, resnet50, mobilenetv2, bert_base, or `all` of these; and those of SMALL and SYMBOLIC below. The
architectures are the published ones; weights are random but scaled so that numbers stay in a normal range through all layers.
--check runs each model with ONNX Runtime on three random inputs and fails unless every output has a standard deviation of at
least 0.1 and differs between the inputs.
"""
import argparse
import math
import os
import sys

import numpy as np
from onnx import TensorProto

from builder import Graph
from decoder import gpt2


def linear(g, x, name, inputs, outputs, gain=1.0):
    """Gemm as PyTorch's exporter writes a Linear layer: weights [outputs, inputs], transB."""
    w = g.normal(f"{name}.weight", (outputs, inputs), gain / math.sqrt(inputs))
    b = g.normal(f"{name}.bias", (outputs,), 0.1)
    return g.op("Gemm", [x, w, b], name=f"/{name}/Gemm", alpha=1.0, beta=1.0, transB=1)


def mlp(seed):
    g = Graph("mlp", seed)
    x = g.input("x", [1, 784])
    x = g.op("Relu", [linear(g, x, "fc1", 784, 256, math.sqrt(2))], name="/Relu")
    w = g.normal("fc2.weight", (10, 256), 1 / math.sqrt(128))
    b = g.normal("fc2.bias", (10,), 0.1)
    g.op("Gemm", [x, w, b], name="/fc2/Gemm", outputs="logits", transB=1)
    g.output("logits", [1, 10])
    return g


def conv_bn(g, x, name, cin, cout, kernel, stride=1, groups=1, gain=math.sqrt(2), scale=1.0):
    """Convolution and batch norm, kept as two nodes. `gain` keeps the variance after the activation that follows."""
    fan_in = cin // groups * kernel * kernel
    pad = (kernel - 1) // 2
    w = g.normal(f"{name}.conv.weight", (cout, cin // groups, kernel, kernel), gain / math.sqrt(fan_in))
    y = g.op("Conv", [x, w], name=f"/{name}/Conv", kernel_shape=[kernel, kernel], strides=[stride, stride],
             pads=[pad, pad, pad, pad], dilations=[1, 1], group=groups)
    params = [
        g.uniform(f"{name}.bn.weight", (cout,), 0.7 * scale, 1.3 * scale),
        g.normal(f"{name}.bn.bias", (cout,), 0.2 * scale),
        g.normal(f"{name}.bn.running_mean", (cout,), 0.2),
        g.uniform(f"{name}.bn.running_var", (cout,), 0.7, 1.3),
    ]
    return g.op("BatchNormalization", [y] + params, name=f"/{name}/BatchNormalization", epsilon=1e-5, momentum=0.9)


def classifier(g, x, features, gain):
    x = g.op("GlobalAveragePool", [x], name="/avgpool/GlobalAveragePool")
    x = g.op("Flatten", [x], name="/Flatten", axis=1)
    w = g.normal("fc.weight", (1000, features), gain / math.sqrt(features))
    b = g.normal("fc.bias", (1000,), 0.1)
    g.op("Gemm", [x, w, b], name="/fc/Gemm", outputs="logits", alpha=1.0, beta=1.0, transB=1)
    g.output("logits", [1, 1000])


def resnet(name, seed, layers, bottleneck, branch_scale, gain, side=224):
    """He et al. 2015, as torchvision has it: the stride of a bottleneck is in its 3x3 convolution. `side`: of the image."""
    g = Graph(name, seed)
    x = g.input("x", [1, 3, side, side])
    x = g.op("Relu", [conv_bn(g, x, "stem", 3, 64, 7, stride=2)], name="/Relu")
    x = g.op("MaxPool", [x], name="/maxpool/MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    expansion = 4 if bottleneck else 1
    cin = 64
    for stage, blocks in enumerate(layers):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            at = f"layer{stage + 1}.{block}"
            if bottleneck:
                y = g.op("Relu", [conv_bn(g, x, f"{at}.1", cin, width, 1)], name=f"/{at}/Relu1")
                y = g.op("Relu", [conv_bn(g, y, f"{at}.2", width, width, 3, stride)], name=f"/{at}/Relu2")
                y = conv_bn(g, y, f"{at}.3", width, width * 4, 1, scale=branch_scale)
            else:
                y = g.op("Relu", [conv_bn(g, x, f"{at}.1", cin, width, 3, stride)], name=f"/{at}/Relu1")
                y = conv_bn(g, y, f"{at}.2", width, width, 3, scale=branch_scale)
            if stride != 1 or cin != width * expansion:
                x = conv_bn(g, x, f"{at}.downsample", cin, width * expansion, 1, stride, gain=1.0)
            x = g.op("Relu", [g.op("Add", [y, x], name=f"/{at}/Add")], name=f"/{at}/Relu")
            cin = width * expansion
    classifier(g, x, cin, gain)
    return g


def mobilenetv2(seed):
    """Sandler et al. 2018, width 1.0: Clip to [0, 6] after every convolution but a block's last."""
    g = Graph("mobilenetv2", seed)
    zero = g.constant("relu6.min", np.float32(0))
    six = g.constant("relu6.max", np.float32(6))

    def relu6(x, name):
        return g.op("Clip", [x, zero, six], name=f"/{name}/Clip")

    x = g.input("x", [1, 3, 224, 224])
    x = relu6(conv_bn(g, x, "stem", 3, 32, 3, 2), "stem")
    cin = 32
    index = 0
    for expand, channels, repeats, first_stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            at = f"block{index}"
            index += 1
            hidden = cin * expand
            y = x
            if expand != 1:
                y = relu6(conv_bn(g, y, f"{at}.expand", cin, hidden, 1), f"{at}.expand")
            y = relu6(conv_bn(g, y, f"{at}.depthwise", hidden, hidden, 3, stride, groups=hidden), f"{at}.depthwise")
            y = conv_bn(g, y, f"{at}.project", hidden, channels, 1)
            x = g.op("Add", [x, y], name=f"/{at}/Add") if stride == 1 and cin == channels else y
            cin = channels
    x = relu6(conv_bn(g, x, "head", 320, 1280, 1), "head")
    classifier(g, x, 1280, 6.0)
    return g


def bert_base(seed, layers=12, tokens=128, hidden=768, heads=12, vocabulary=30522, name="bert_base", symbolic=False):
    """Devlin et al. 2018, the encoder: token ids in, last hidden state out. GELU is written with Erf, as exporters do.
    With `symbolic` batch and seq are open, seq up to `tokens`, and what follows from them is computed from Shape."""
    g = Graph(name, seed)
    batch, seq = ("batch", "seq") if symbolic else (1, tokens)
    copied = [0, 0] if symbolic else [1, tokens]        # in Reshape 0 is the dimension of the input
    head = hidden // heads
    inner = hidden * 4

    def dense(x, at, inputs, outputs, gain=1.0):
        w = g.normal(f"{at}.weight", (inputs, outputs), gain / math.sqrt(inputs))
        b = g.normal(f"{at}.bias", (outputs,), 0.05)
        return g.op("Add", [b, g.op("MatMul", [x, w], name=f"/{at}/MatMul")], name=f"/{at}/Add")

    def layer_norm(x, at, output=None):
        scale = g.uniform(f"{at}.weight", (hidden,), 0.7, 1.3)
        bias = g.normal(f"{at}.bias", (hidden,), 0.1)
        return g.op("LayerNormalization", [x, scale, bias], name=f"/{at}/LayerNormalization", outputs=output, axis=-1,
                    epsilon=1e-12)

    split_shape = g.constant("split_heads", np.array([*copied, heads, head], dtype=np.int64))
    merge_shape = g.constant("merge_heads", np.array([*copied, hidden], dtype=np.int64))
    root = g.constant("sqrt_head", np.float32(math.sqrt(head)))
    sqrt2 = g.constant("sqrt_2", np.float32(math.sqrt(2)))
    one = g.constant("one", np.float32(1))
    half = g.constant("half", np.float32(0.5))

    ids = g.input("input_ids", [batch, seq], TensorProto.INT64, domain=f"int[0,{vocabulary})")
    words = g.normal("embeddings.word", (vocabulary, hidden), 1.0)
    positions = g.normal("embeddings.position", (1, tokens, hidden), 0.5)
    if symbolic:
        ends = [g.constant(f"embeddings.{at}", np.array([at], dtype=np.int64)) for at in (0, 1, 2)]
        length = g.op("Slice", [g.op("Shape", [ids], name="/embeddings/Shape"), ends[1], ends[2]], name="/embeddings/Slice")
        positions = g.op("Slice", [positions, ends[0], length, ends[1]], name="/embeddings/Slice_1")
    kinds = g.normal("embeddings.token_type", (1, 1, hidden), 0.2)
    x = g.op("Gather", [words, ids], name="/embeddings/Gather", axis=0)
    x = g.op("Add", [x, kinds], name="/embeddings/Add")
    x = g.op("Add", [x, positions], name="/embeddings/Add_1")
    x = layer_norm(x, "embeddings.norm")
    for layer in range(layers):
        at = f"layer{layer}"

        def heads_of(what, permutation):
            y = dense(x, f"{at}.{what}", hidden, hidden, 1.2 if what != "value" else 1.0)
            y = g.op("Reshape", [y, split_shape], name=f"/{at}/{what}/Reshape")
            return g.op("Transpose", [y], name=f"/{at}/{what}/Transpose", perm=permutation)

        q = heads_of("query", [0, 2, 1, 3])
        k = heads_of("key", [0, 2, 3, 1])
        v = heads_of("value", [0, 2, 1, 3])
        scores = g.op("Div", [g.op("MatMul", [q, k], name=f"/{at}/scores/MatMul"), root], name=f"/{at}/scores/Div")
        weights = g.op("Softmax", [scores], name=f"/{at}/Softmax", axis=-1)
        mixed = g.op("MatMul", [weights, v], name=f"/{at}/mix/MatMul")
        mixed = g.op("Transpose", [mixed], name=f"/{at}/mix/Transpose", perm=[0, 2, 1, 3])
        mixed = g.op("Reshape", [mixed, merge_shape], name=f"/{at}/mix/Reshape")
        x = g.op("Add", [dense(mixed, f"{at}.attention_output", hidden, hidden), x], name=f"/{at}/attention/Add")
        x = layer_norm(x, f"{at}.attention_norm")
        y = dense(x, f"{at}.intermediate", hidden, inner)
        e = g.op("Erf", [g.op("Div", [y, sqrt2], name=f"/{at}/gelu/Div")], name=f"/{at}/gelu/Erf")
        e = g.op("Mul", [y, g.op("Add", [e, one], name=f"/{at}/gelu/Add")], name=f"/{at}/gelu/Mul")
        y = g.op("Mul", [e, half], name=f"/{at}/gelu/Mul_1")
        x = g.op("Add", [dense(y, f"{at}.output", inner, hidden, 1.5), x], name=f"/{at}/output/Add")
        x = layer_norm(x, f"{at}.output_norm", "last_hidden_state" if layer == layers - 1 else None)
    g.output("last_hidden_state", [batch, seq, hidden])
    return g


def with_open_batch(g):
    """The model with the first dimension of inputs and outputs open."""
    for value in [*g.inputs, *g.outputs]:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    return g


def resnet18(seed, **how):
    return resnet("resnet18", seed, [2, 2, 2, 2], False, 0.5, 2.0, **how)


def resnet50(seed, **how):
    return resnet("resnet50", seed, [3, 4, 6, 3], True, 0.4, 2.0, **how)


MODELS = {"mlp": mlp, "resnet18": resnet18, "resnet50": resnet50, "mobilenetv2": mobilenetv2, "bert_base": bert_base}
# The same networks, every layer and weight, for a smaller image or few tokens: what an emulator runs in seconds.
SMALL = {
    "resnet18_96": lambda seed: resnet18(seed, side=96),
    "resnet50_96": lambda seed: resnet50(seed, side=96),
    "bert_base_16": lambda seed: bert_base(seed, tokens=16),
}
# With dimensions that a run chooses (hone compile --dim batch=1..8 --dim seq=1..512).
SYMBOLIC = {
    "mlp_open": lambda seed: with_open_batch(mlp(seed)),
    "resnet18_open": lambda seed: with_open_batch(MODELS["resnet18"](seed)),
    "bert_base_open": lambda seed: bert_base(seed, tokens=512, symbolic=True),
    "bert_small_open": lambda seed: bert_base(seed, layers=2, tokens=64, hidden=128, heads=4, vocabulary=1000,
                                              name="bert_small", symbolic=True),
    "gpt2": gpt2,
    "gpt2_small": lambda seed: gpt2(seed, layers=2, hidden=64, heads=4, vocabulary=500, positions=64, name="gpt2_small"),
}


def check(path):
    """Three random inputs: what the outputs' spread is, and how far they are apart."""
    from reference import open_session, random_inputs
    session = open_session(path, threads=0)
    runs = [session.run(None, random_inputs(path, session, seed)) for seed in range(3)]
    good = True
    for i, output in enumerate(session.get_outputs()):
        values = [run[i].astype(np.float64) for run in runs]
        spread = min(v.std() for v in values)
        apart = min((values[a] - values[b]).std() for a, b in [(0, 1), (0, 2), (1, 2)])
        ok = all(np.isfinite(v).all() for v in values) and spread >= 0.1 and apart >= 0.02
        good &= ok
        print(f"{os.path.basename(path)}: {output.name} {values[0].shape} std {spread:.3f}, between inputs {apart:.3f}, "
              f"largest {max(np.abs(v).max() for v in values):.1f}: {'ok' if ok else 'NOT OK'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=[*MODELS, *SMALL, *SYMBOLIC, "all"], metavar="NAME")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    good = True
    for name in MODELS if "all" in args.names else args.names:
        path = {**MODELS, **SMALL, **SYMBOLIC}[name](args.seed).save(os.path.join(args.output, f"{name}.onnx"))
        print(f"wrote {path}, {os.path.getsize(path) / 1e6:.1f} MB", flush=True)
        if args.check:
            good &= check(path)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
