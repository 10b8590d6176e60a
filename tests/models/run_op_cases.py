#!/usr/bin/env python3
"""Compiles and runs every case of make_op_cases.py with Hone and compares with ONNX Runtime's outputs.

    run_op_cases.py DIR --hone PATH [--filter REGEX] [--jobs N] [--min-cases N] [--compile-args "..."]

One line for every case that is not right, then a count by kind: passed, refused (the importer says why), failed (compiling or
running ended otherwise), wrong (outputs differ), slow (over a minute). Exit 0 when all passed, 6 when some did not.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from compare import difference

IMPORT_REFUSED = 3


def first_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "nothing said"


def run_case(case, folder, hone, compile_args):
    """(kind, reason)."""
    with tempfile.TemporaryDirectory() as scratch:
        bundle = os.path.join(scratch, "case.hone")
        command = [hone, "compile", os.path.join(folder, case["model"]), "-o", bundle, *compile_args]
        outputs = {name: os.path.join(scratch, f"output_{i}.npy") for i, name in enumerate(case["outputs"])}
        run = [hone, "run", bundle]
        for name, path in case["inputs"].items():
            run += ["--input", f"{name}={os.path.join(folder, path)}"]
        for name, path in outputs.items():
            run += ["--output", f"{name}={path}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                kind = "refused" if done.returncode == IMPORT_REFUSED else "failed"
                return kind, f"compile ended with {done.returncode}: {first_line(done.stderr)}"
            done = subprocess.run(run, capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                return "failed", f"run ended with {done.returncode}: {first_line(done.stderr)}"
        except subprocess.TimeoutExpired as expired:
            return "slow", f"{expired.cmd[1]} took over {expired.timeout:.0f} s"
        for name, path in outputs.items():
            want = np.load(os.path.join(folder, case["outputs"][name]))
            problem = difference(np.load(path), want, case["rtol"], case["atol"])
            if problem:
                return "wrong", f"{name}: {problem}"
    return "passed", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--min-cases", type=int, default=0, help="fail when fewer cases than this are there")
    parser.add_argument("--compile-args", default="--untuned", help="handed to hone compile")
    args = parser.parse_args()
    with open(os.path.join(args.folder, "index.json")) as file:
        cases = [c for c in json.load(file) if re.search(args.filter, c["name"])]
    if len(cases) < args.min_cases:
        sys.exit(f"run_op_cases.py: {len(cases)} cases, at least {args.min_cases} are expected")
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda c: run_case(c, args.folder, args.hone, args.compile_args.split()), cases)
        for case, (kind, reason) in zip(cases, results):
            counts[kind] += 1
            if kind != "passed":
                print(f"{kind}: {case['name']} ({case['op']}): {reason}", flush=True)
    print(f"{counts['passed']} of {len(cases)} cases passed" + "".join(f", {counts[k]} {k}" for k in counts if k != "passed"))
    return 0 if counts["passed"] == len(cases) else 6


if __name__ == "__main__":
    sys.exit(main())
