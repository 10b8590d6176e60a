#!/usr/bin/env python3
"""Gives the graphs in exported/ their weights again: seeded random numbers, written as external data beside a copy of the graph.

    fill_weights.py [GRAPH.onnx ...] -o DIR [--seed S] [--check]      # all graphs of exported/ when none is named

Each tensor of GRAPH.json is drawn from a normal distribution with its mean and deviation; one that was constant (a bias of
zeros) gets a deviation of 0.05, so that losing it shows. --check runs the result with ONNX Runtime as make_models.py does.
"""
import argparse
import glob
import hashlib
import json
import os
import shutil
import sys

import numpy as np


def fill(graph, folder, seed):
    name = os.path.splitext(os.path.basename(graph))[0]
    with open(os.path.splitext(graph)[0] + ".json") as file:
        weights = json.load(file)["weights"]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.onnx")
    shutil.copyfile(graph, path)
    with open(path + ".data", "wb") as data:
        for w in weights:
            digest = hashlib.sha256(f"{name}/{w['name']}/{seed}".encode()).digest()
            random = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))
            values = random.standard_normal(w["shape"], dtype=np.float32)
            data.seek(w["offset"])
            data.write((values * np.float32(w["std"] or 0.05) + np.float32(w["mean"])).astype("<f4").tobytes())
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH.onnx")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exported")
    good = True
    for graph in args.graphs or sorted(glob.glob(os.path.join(here, "*.onnx"))):
        path = fill(graph, args.output, args.seed)
        print(f"wrote {path} and its data", flush=True)
        if args.check:
            from make_models import check
            good &= check(path)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
