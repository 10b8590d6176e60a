#!/usr/bin/env python3
"""Runs a bundle with `hone run` on seeded random inputs and compares its outputs with ONNX Runtime's.

    check_bundle.py MODEL.onnx BUNDLE.hone --hone PATH [--seeds 1 2 3] [--rtol 1e-3] [--atol 1e-4]   # exit 6 when they differ
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

from compare import difference
from reference import file_name, open_session, random_inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("bundle")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    args = parser.parse_args()
    session = open_session(args.model)
    for seed in args.seeds:
        inputs = random_inputs(args.model, session, seed)
        names = [output.name for output in session.get_outputs()]
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
                problem = difference(got, want, args.rtol, args.atol)
                if problem:
                    print(f"check_bundle.py: seed {seed}: {name}: {problem}", file=sys.stderr)
                    return 6
                worst = float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max()) if got.size else 0.0
                print(f"seed {seed}: {name}: equal to ONNX Runtime's within rtol {args.rtol}, atol {args.atol} (largest error {worst:.2g})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
