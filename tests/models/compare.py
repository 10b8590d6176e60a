#!/usr/bin/env python3
"""Compares two arrays: |a - b| <= atol + rtol * |b| for every element, shapes and types alike.

    compare.py A.npy B.npy [--rtol 1e-3] [--atol 1e-4]        # exit 0 when equal, 6 when not, 2 when unreadable
"""
import argparse
import sys

import numpy as np


def difference(a, b, rtol, atol):
    """None when they agree, else a sentence that says where they do not."""
    if a.shape != b.shape:
        return f"shapes differ: {list(a.shape)} and {list(b.shape)}"
    if a.dtype != b.dtype:
        return f"types differ: {a.dtype} and {b.dtype}"
    if a.size == 0:
        return None
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = np.abs(x - y)
        excess = error - (atol + rtol * np.abs(y))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    bad = ~same & ~(excess <= 0)
    if not bad.any():
        return None
    worst = np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(excess, nan=np.inf), -np.inf)), a.shape)
    return (f"{int(bad.sum())} of {a.size} elements differ; the worst at {[int(i) for i in worst]}: {a[worst]} and "
            f"{b[worst]}, off by {error[worst]:.3g} where {atol + rtol * abs(y[worst]):.3g} is allowed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    args = parser.parse_args()
    try:
        a, b = np.load(args.a), np.load(args.b)
    except (OSError, ValueError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    problem = difference(a, b, args.rtol, args.atol)
    if problem:
        print(f"compare.py: {args.a}, {args.b}: {problem}", file=sys.stderr)
        return 6
    x, y = a.astype(np.float64), b.astype(np.float64)
    print(f"equal within rtol {args.rtol}, atol {args.atol}: largest error {np.abs(x - y).max() if a.size else 0:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
