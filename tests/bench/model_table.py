#!/usr/bin/env python3
"""Times bundles of a model against ONNX Runtime, interleaved, and prints one row: medians, spread, ratios.

    model_table.py MODEL.onnx --hone PATH --untuned A.hone --tuned B.hone [--tune-log LOG.jsonl] [--threads N] [--json]

Every round times each contender once, in turn, every second round in the opposite order; a latency is the median over the
rounds, the spread is (p90 - p10) / p50 of the rounds' medians. The speed-up is the median over the rounds of untuned over
tuned in the same round, which a machine that changes its speed between rounds leaves alone, with the interval that holds
the true median with 95 % confidence (order statistics: the binomial distribution with p = 1/2).
"""
import argparse
import json
import math
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


def median_with_interval(values):
    """(median, low, high): [low, high] holds the true median with at least 95 % confidence, or is all there is."""
    ordered, n = sorted(values), len(values)
    # P(the true median lies before the k-th smallest or after the k-th largest) = 2 P(Binomial(n, 1/2) < k)
    k = max([k for k in range(1, n // 2 + 1) if 2 * sum(math.comb(n, i) for i in range(k)) <= 0.05 * 2 ** n], default=1)
    return float(np.median(ordered)), ordered[k - 1], ordered[n - k]


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
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each contender in each round")
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
    for turn in range(args.rounds):
        for name in list(contenders)[::1 if turn % 2 == 0 else -1]:
            rounds[name].append(contenders[name]())
    ms = {name: float(np.median(values)) for name, values in rounds.items()}
    spread = {name: float((np.percentile(v, 90) - np.percentile(v, 10)) / np.median(v)) for name, v in rounds.items()}
    speed_up, low, high = median_with_interval([a / b for a, b in zip(rounds["untuned"], rounds["tuned"])])
    tune = last_result(args.tune_log)
    row = {
        "model": os.path.splitext(os.path.basename(args.model))[0], "threads": args.threads,
        "untuned_ms": ms["untuned"], "tuned_ms": ms["tuned"], "onnxruntime_ms": ms["onnxruntime"],
        "speed_up": speed_up, "speed_up_interval": [low, high],
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
