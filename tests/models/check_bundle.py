#!/usr/bin/env python3
"""Runs a bundle with `hone run` on seeded random inputs and compares its outputs with ONNX Runtime's.

    check_bundle.py MODEL.onnx BUNDLE.hone --hone PATH [--seeds 1 2 3] [--rtol 1e-3] [--atol 1e-4]   # exit 6 when they differ
    check_bundle.py OPEN.onnx BUNDLE.hone --hone PATH --sizes batch=1,2,4 --sizes seq=1,17,64,512
    check_bundle.py QUANTISED.onnx BUNDLE.hone --hone PATH --within-step 0.999
    check_bundle.py MODEL.onnx BUNDLE.hone --hone PATH --within-norm 0.02

With --within-step that share of the elements of every output must be at most one quantisation step off, the scale of the
DequantizeLinear that makes the output, and ONNX Runtime runs without optimisations: its kernels of bytes saturate on CPUs
without VNNI, where 0.5 % of a ResNet-18's outputs are further off than that from its own. With --within-norm the Euclidean norm of an output's errors must be at most that
share of the output's, which is what can be said of a network whose products are rounded. With --sizes open dimensions take
the sizes given in turn, all of the longest list with each seed.
"""
import argparse
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

from compare import difference
from onnx import load, numpy_helper
from reference import file_name, open_session, random_inputs


def quantisation_steps(path):
    """The step of every output: the scale of what makes it."""
    graph = load(path).graph
    constants = {t.name: t for t in graph.initializer}
    return {node.output[0]: float(numpy_helper.to_array(constants[node.input[1]]))
            for node in graph.node if node.op_type == "DequantizeLinear" and node.input[1] in constants
            and node.output[0] in {output.name for output in graph.output}}


def beyond_a_step(a, b, step, share):
    """None when that share of the elements is within a step, else a sentence."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return difference(a, b, 0, step)
    within = float((np.abs(a.astype(np.float64) - b.astype(np.float64)) <= step * 1.001).mean())   # rounding of the scale
    return None if within >= share else f"{within:.5f} of the elements are within a step of {step:.3g}, not {share}"


def beyond_norm(a, b, share):
    """None when the norm of the errors is at most that share of b's, else a sentence."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return difference(a, b, 0, 0)
    error = np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b.astype(np.float64))
    return None if error <= share else f"the errors' norm is {error:.4g} of the output's, not at most {share}"


def sizes_in_turn(texts):
    """["batch=1,2", "seq=1,7,9"] as [{batch: 1, seq: 1}, {batch: 2, seq: 7}, {batch: 1, seq: 9}]."""
    lists = {name: [int(n) for n in values.split(",")] for name, values in (text.split("=") for text in texts)}
    longest = max([len(values) for values in lists.values()], default=1)
    return [{name: values[i % len(values)] for name, values in lists.items()} for i in range(longest)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("bundle")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("--within-step", type=float)
    parser.add_argument("--within-norm", type=float)
    parser.add_argument("--sizes", action="append", default=[], metavar="NAME=N,N..")
    args = parser.parse_args()
    steps = quantisation_steps(args.model) if args.within_step is not None else {}
    session = open_session(args.model, optimize=args.within_step is None)
    for seed, sizes in itertools.product(args.seeds, sizes_in_turn(args.sizes)):
        inputs = random_inputs(args.model, session, seed, sizes)
        names = [output.name for output in session.get_outputs()]
        at = "".join(f", {name}={size}" for name, size in sizes.items())
        expected = session.run(names, inputs)
        with tempfile.TemporaryDirectory() as folder:
            command = [args.hone, "run", args.bundle]
            for name, value in inputs.items():
                path = os.path.join(folder, "in_" + file_name(name))
                np.save(path, value)
                command += ["--input", f"{name}={path}"]
            outputs = {name: os.path.join(folder, "out_" + file_name(name)) for name in names}
            for name, path in outputs.items():
                command += ["--output", f"{name}={path}"]
            code = subprocess.run(command).returncode
            if code != 0:
                sys.exit(f"check_bundle.py: hone run ended with {code}")
            for name, want in zip(names, expected):
                got = np.load(outputs[name])
                if args.within_step is not None:
                    problem = beyond_a_step(got, want, steps[name], args.within_step)
                elif args.within_norm is not None:
                    problem = beyond_norm(got, want, args.within_norm)
                else:
                    problem = difference(got, want, args.rtol, args.atol)
                if problem:
                    print(f"check_bundle.py: seed {seed}: {name}{at}: {problem}", file=sys.stderr)
                    return 6
                worst = float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max()) if got.size else 0.0
                bound = (f"a step of {steps[name]:.3g} for {args.within_step:.1%}" if args.within_step is not None
                         else f"{args.within_norm} of its norm" if args.within_norm is not None
                         else f"rtol {args.rtol}, atol {args.atol}")
                print(f"seed {seed}: {name}{at}: equal to ONNX Runtime's within {bound} (largest error {worst:.2g})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
