#!/usr/bin/env python3
"""Runs a model with ONNX Runtime: the reference outputs, and the peer's latency.

    reference.py MODEL.onnx --seed S -o DIR [--threads N]     # DIR/NAME.npy for every input and output
    reference.py MODEL.onnx --seed S --time [--threads N] [--json]

Inputs are random and seeded: floats are standard normal, integers and bools uniform in the domain that the model's metadata
gives ("domain.NAME" = "int[LOW,HIGH)"), else in [0, 10). Files are named after the tensors, with characters that
file names do not like replaced by _.
"""
import argparse
import json
import os
import re
import sys
import time

import numpy as np

DTYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8,
    "tensor(uint64)": np.uint64, "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def open_session(path, threads=0, optimize=True):
    """threads 0: ONNX Runtime's choice."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def random_inputs(path, session, seed, sizes=None):
    """One array for every input, by name. An open dimension is 1, or what `sizes` says by its name."""
    sizes = sizes or {}
    metadata = session.get_modelmeta().custom_metadata_map
    random = np.random.default_rng(seed)
    inputs = {}
    for info in session.get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(d, 1) for d in info.shape]
        dtype = DTYPES.get(info.type)
        if dtype is None:
            sys.exit(f"reference.py: {path}: input {info.name} is a {info.type}; only tensors of numbers can be made up")
        if np.issubdtype(dtype, np.floating):
            inputs[info.name] = random.standard_normal(shape).astype(dtype)
        elif dtype == np.bool_:
            inputs[info.name] = random.integers(0, 2, shape).astype(dtype)
        else:
            match = re.fullmatch(r"int\[(-?\d+),(-?\d+)\)", metadata.get(f"domain.{info.name}", "int[0,10)"))
            inputs[info.name] = random.integers(int(match[1]), int(match[2]), shape).astype(dtype)
    return inputs


def file_name(tensor):
    return re.sub(r"[^A-Za-z0-9_.-]", "_", tensor) + ".npy"


def percentile_ms(times, q):
    return float(np.percentile(times, q) * 1e3)


def measure(session, inputs, seconds=2.0, warmup_seconds=0.5):
    """Times of single runs; at least 5 after the warm-up."""
    names = [o.name for o in session.get_outputs()]
    end = time.perf_counter() + warmup_seconds
    session.run(names, inputs)
    while time.perf_counter() < end:
        session.run(names, inputs)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        session.run(names, inputs)
        times.append(time.perf_counter() - start)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", metavar="DIR")
    parser.add_argument("--threads", type=int, default=0, help="0: ONNX Runtime's choice")
    parser.add_argument("--time", action="store_true", help="also print the latency")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long to measure")
    parser.add_argument("--json", action="store_true", help="the latency as one JSON object")
    args = parser.parse_args()
    session = open_session(args.model, args.threads)
    inputs = random_inputs(args.model, session, args.seed)
    if args.output:
        os.makedirs(args.output, exist_ok=True)
        outputs = session.run(None, inputs)
        for name, value in inputs.items():
            np.save(os.path.join(args.output, file_name(name)), value)
        for info, value in zip(session.get_outputs(), outputs):
            np.save(os.path.join(args.output, file_name(info.name)), value)
    if args.time:
        times = measure(session, inputs, args.seconds)
        result = {"p10": percentile_ms(times, 10), "p50": percentile_ms(times, 50), "p90": percentile_ms(times, 90)}
        if args.json:
            print(json.dumps({"latency_ms": result, "runs": len(times), "threads": args.threads}))
        else:
            print(f"onnxruntime p50 {result['p50']:.3f} ms (p10 {result['p10']:.3f}, p90 {result['p90']:.3f}), "
                  f"{len(times)} runs, threads {args.threads or 'default'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
