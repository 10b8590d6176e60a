#!/usr/bin/env python3
"""Times bundles of a model against ONNX Runtime, interleaved, and prints one row: medians, spread, ratios.

    model_table.py MODEL.onnx --hone PATH --untuned A.hone --tuned B.hone [--tune-log LOG.jsonl] [--threads N] [--json]

Every round times each contender once, in turn; a figure is the median over the rounds, the spread is (p90 - p10) / p50 of
the rounds' medians.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from reference import measure, open_session, percentile_ms, random_inputs  # noqa: E402


def hone_ms(hone, bundle, threads, seconds):
    out = subprocess.run([hone, "bench", bundle, "--threads", str(threads), "--seconds", str(seconds), "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["latency_ms"]["p50"]


def last_result(path):
    if not path:
        return {}
    with open(path) as log:
        events = [json.loads(line) for line in log if line.strip()]
    return next((e for e in reversed(events) if e.get("event") == "result"), {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--untuned", required=True)
    parser.add_argument("--tuned", required=True)
    parser.add_argument("--tune-log")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each contender in each round")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    session = open_session(args.model, args.threads)
    inputs = random_inputs(args.model, session, 1)
    contenders = {
        "untuned": lambda: hone_ms(args.hone, args.untuned, args.threads, args.seconds),
        "tuned": lambda: hone_ms(args.hone, args.tuned, args.threads, args.seconds),
        "onnxruntime": lambda: percentile_ms(measure(session, inputs, args.seconds, 0.1), 50),
    }
    rounds = {name: [] for name in contenders}
    for _ in range(args.rounds):
        for name, run in contenders.items():
            rounds[name].append(run())
    ms = {name: float(np.median(values)) for name, values in rounds.items()}
    spread = {name: float((np.percentile(v, 90) - np.percentile(v, 10)) / np.median(v)) for name, v in rounds.items()}
    tune = last_result(args.tune_log)
    row = {
        "model": os.path.splitext(os.path.basename(args.model))[0], "threads": args.threads,
        "untuned_ms": ms["untuned"], "tuned_ms": ms["tuned"], "onnxruntime_ms": ms["onnxruntime"],
        "speed_up": ms["untuned"] / ms["tuned"],
        "untuned_over_onnxruntime": ms["untuned"] / ms["onnxruntime"],
        "tuned_over_onnxruntime": ms["tuned"] / ms["onnxruntime"],
        "spread": spread, "trials": tune.get("trials"), "seconds": tune.get("seconds"),
    }
    if args.json:
        print(json.dumps(row))
        return 0
    shown = lambda value, digits=0: "-" if value is None else f"{value:.{digits}f}"  # noqa: E731
    print(f"{'model':<14}{'untuned ms':>11}{'tuned ms':>10}{'speed-up':>10}{'ORT ms':>9}{'tuned/ORT':>11}{'trials':>8}{'seconds':>9}{'spread':>8}")
    print(f"{row['model']:<14}{row['untuned_ms']:>11.3f}{row['tuned_ms']:>10.3f}{row['speed_up']:>9.2f}x"
          f"{row['onnxruntime_ms']:>9.3f}{row['tuned_over_onnxruntime']:>11.2f}{shown(row['trials']):>8}{shown(row['seconds']):>9}"
          f"{max(spread.values()) * 100:>7.0f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
