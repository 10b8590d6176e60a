#!/usr/bin/env python3
"""Checks every layer of a quantised model alone: each is given the integers that ONNX Runtime computes in front of it, and what
Hone makes of them is held against the operators' definitions, computed in double.

    check_quantised_layers.py QUANTISED.onnx --hone PATH [--seeds 1 2] [--differ 1e-4]      # exit 6 when a layer is off
    check_quantised_layers.py QUANTISED.onnx --hone PATH --peer             # .. and how far off ONNX Runtime is

A layer is what lies between two QuantizeLinear. It may be off by one step in a share --differ of its elements, or in one: where
a sum in double lies so near the middle of two steps that float32 rounds it the other way. Outputs of a whole network cannot be
held so tightly: single steps grow from layer to layer, in a deep network until no two ways to compute it agree. --peer says how
much of the model's outputs ONNX Runtime has within a step of the definitions.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

from reference import file_name, open_session, random_inputs


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def integers(graph):
    """What QuantizeLinear makes, by name: the types."""
    types = {t.name: t.data_type for t in graph.initializer}
    return {node.output[0]: types[node.input[2]] for node in graph.node if node.op_type == "QuantizeLinear"}


def with_outputs(model, types):
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.output[:]
    out.graph.output.extend(helper.make_tensor_value_info(name, dtype, None) for name, dtype in types.items())
    return out


def taken_apart(model, values):
    """The model with an input for every integer tensor that a layer reads, and all of them as outputs."""
    types = integers(model.graph)
    out = with_outputs(model, types)
    for node in out.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in types:
            node.input[0] = "in:" + node.input[0]
    read = {name for node in out.graph.node for name in node.input if name.startswith("in:")}
    for name in sorted(read):
        out.graph.input.append(helper.make_tensor_value_info(name, types[name[3:]], values[name[3:]].shape))
    for output in out.graph.output:
        output.CopyFrom(helper.make_tensor_value_info(output.name, types[output.name], values[output.name].shape))
    makes = {name: node for node in out.graph.node for name in node.output}
    live, wanted = set(), [output.name for output in out.graph.output]
    while wanted:
        name = wanted.pop()
        if name in makes and name not in live:
            live.add(name)
            wanted += makes[name].input
    kept = [node for node in out.graph.node if node.output[0] in live]
    del out.graph.node[:]
    out.graph.node.extend(kept)
    return out


# ---- The operators' definitions, in double

def along(param, x, axis):
    """A scale or zero point as it goes with x."""
    shape = [1] * x.ndim
    if np.size(param) > 1:
        shape[axis] = -1
    return np.asarray(param, np.float64).reshape(shape)


def quantise(x, scale, zero, axis=1):
    limits = np.iinfo(zero.dtype)
    steps = np.rint(x / along(scale, x, axis)) + along(zero, x, axis)
    return np.clip(steps, limits.min, limits.max).astype(zero.dtype)


def dequantise(x, scale, zero, axis=1):
    return (x - along(zero, x, axis)) * along(scale, x, axis)


def convolve(x, w, bias, a):
    (_, _, height, width), groups = x.shape, a.get("group", 1)
    pads, (down, right) = a.get("pads", [0] * 4), a.get("strides", [1, 1])
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows = (height + pads[0] + pads[2] - w.shape[2]) // down + 1
    columns = (width + pads[1] + pads[3] - w.shape[3]) // right + 1
    x, filters = x.reshape(x.shape[0], groups, -1, *x.shape[2:]), w.reshape(groups, -1, *w.shape[1:])
    y = 0.0
    for i, j in np.ndindex(*w.shape[2:]):
        taps = x[:, :, :, i:i + down * rows:down, j:j + right * columns:right][:, :, :, :rows, :columns]
        taps = taps.reshape(*taps.shape[:3], -1)
        y = y + filters[None, :, :, :, i, j] @ taps
    return y.reshape(y.shape[0], -1, rows, columns) + (0 if bias is None else bias.reshape(-1, 1, 1))


def pool_max(x, a):
    pads, (down, right), kernel = a.get("pads", [0] * 4), a["strides"], a["kernel_shape"]
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))[:, :, ::down, ::right].max((-2, -1))


def apply(node, x):
    a, op = attributes(node), node.op_type
    if op == "QuantizeLinear":
        return quantise(*x, axis=a.get("axis", 1))
    if op == "DequantizeLinear":
        return dequantise(*x, axis=a.get("axis", 1))
    if op == "Conv":
        return convolve(x[0], x[1], x[2] if len(x) > 2 else None, a)
    if op == "Gemm" and not a.get("transA") and a.get("alpha", 1) == 1 and a.get("beta", 1) == 1:
        return x[0] @ (x[1].T if a.get("transB") else x[1]) + (x[2] if len(x) > 2 else 0)
    if op == "Add":
        return x[0] + x[1]
    if op == "Relu":
        return np.maximum(x[0], 0)
    if op == "MaxPool":
        return pool_max(x[0], a)
    if op == "GlobalAveragePool":
        return x[0].mean((2, 3), keepdims=True)
    if op == "Flatten":
        return x[0].reshape(x[0].shape[0], -1)
    sys.exit(f"check_quantised_layers.py: node {node.name} is a {op}, of which no definition is written here")


def in_double(model, inputs):
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values.update({name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in inputs.items()})
    for node in model.graph.node:
        values[node.output[0]] = apply(node, [values[name] for name in node.input])
    return values


# ---- Against each other

def run_hone(hone, bundle, inputs, outputs, folder):
    command = [hone, "run", bundle]
    for name, value in inputs.items():
        path = os.path.join(folder, "in_" + file_name(name))
        np.save(path, value)
        command += ["--input", f"{name}={path}"]
    paths = {name: os.path.join(folder, "out_" + file_name(name)) for name in outputs}
    for name, path in paths.items():
        command += ["--output", f"{name}={path}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {name: np.load(path) for name, path in paths.items()}


def steps_off(got, want):
    return np.abs(got.astype(np.int64) - want.astype(np.int64))


def in_words(steps):
    return f"{int((steps > 0).sum())} of {steps.size} off, by {int(steps.max(initial=0))} at most"


class Layers:
    """A model taken apart, and the integers that its layers are given."""

    def __init__(self, path, folder):
        self.path, self.folder, self.model = path, folder, onnx.load(path)
        self.types = integers(self.model.graph)
        inner = os.path.join(folder, "inner.onnx")
        onnx.save(with_outputs(self.model, self.types), inner)
        self.session = open_session(inner)
        self.apart = os.path.join(folder, "apart.onnx")

    def given(self, seed):
        self.inputs = random_inputs(self.path, self.session, seed)
        self.values = dict(zip(self.types, self.session.run(list(self.types), self.inputs)))
        self.layers = taken_apart(self.model, self.values)
        onnx.save(self.layers, self.apart)
        return {i.name: self.values[i.name[3:]] if i.name.startswith("in:") else self.inputs[i.name] for i in self.layers.graph.input}

    def print_peer(self, given, want):
        """How far ONNX Runtime is off: by layers, and in all of them one after the other."""
        peer = dict(zip(self.types, open_session(self.apart).run(list(self.types), given)))
        worst = max(self.types, key=lambda name: (steps_off(peer[name], want[name]) > 0).mean())
        print(f"   ONNX Runtime's layer that is off most: {worst}: {in_words(steps_off(peer[worst], want[worst]))}")
        whole = in_double(self.model, self.inputs)
        last = list(self.types)[-1]
        share = (steps_off(self.values[last], whole[last]) <= 1).mean()
        print(f"   layers one after the other: ONNX Runtime has {share:.4f} of the last one within a step")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--differ", type=float, default=1e-4)
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        layers, bundle = Layers(args.model, folder), os.path.join(folder, "apart.hone")
        for seed in args.seeds:
            given = layers.given(seed)
            if not os.path.exists(bundle):
                subprocess.run([args.hone, "compile", layers.apart, "-o", bundle, "--untuned"], check=True, stdout=subprocess.DEVNULL)
            want = in_double(layers.layers, given)
            got = run_hone(args.hone, bundle, given, list(layers.types), folder)
            off = {name: steps_off(got[name], want[name]) for name in layers.types}
            for name, steps in off.items():
                if steps.max(initial=0) > 1 or (steps > 0).sum() > max(1, args.differ * steps.size):
                    print(f"check_quantised_layers.py: seed {seed}: {name}: {in_words(steps)}", file=sys.stderr)
                    wrong += 1
            worst = max(off, key=lambda name: (off[name] > 0).mean())
            print(f"seed {seed}: {len(off)} layers, of which {worst} is off most: {in_words(off[worst])}")
            if args.peer:
                layers.print_peer(given, want)
    return 6 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
