#!/usr/bin/env python3
"""One bundle for a range of sizes against a bundle made for each size alone: outputs, times, bytes.

    symbolic_table.py OPEN.onnx --hone PATH --dim seq=1..512 [--at 1,2,3,5,..] [--most 1.3] [--seconds 3] [--threads N]

Both are compiled untuned, and timed in turn (`hone bench ONE RANGE --dim seq=N`). Outputs of the one bundle are held
against ONNX Runtime's (check_bundle.py). Prints a line a size and the bundles' bytes; exit code 1 where an output differs,
a size takes more than --most times what its own bundle does, or the bundle has more than twice the bytes of the largest of
the others.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

LENGTHS = "1,2,3,5,8,13,16,31,32,64,100,128,200,256,384,500,512"
CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "check_bundle.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--dim", required=True, metavar="NAME=LOW..HIGH")
    parser.add_argument("--at", default=LENGTHS, metavar="N,N..")
    parser.add_argument("--most", type=float, default=1.3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    name = args.dim.split("=")[0]
    low, high = (int(end) for end in args.dim.split("=")[1].split(".."))
    sizes = [n for n in map(int, args.at.split(",")) if low <= n <= high]

    with tempfile.TemporaryDirectory() as folder:
        ranged, alone = os.path.join(folder, "range.hone"), os.path.join(folder, "one.hone")

        def compile_to(bundle, dim):
            subprocess.run([args.hone, "compile", args.model, "-o", bundle, "--untuned", "--threads", str(args.threads),
                            "--dim", dim], check=True)
            return os.path.getsize(bundle)

        range_bytes, most_bytes, slow = compile_to(ranged, args.dim), 0, []
        check = subprocess.run([sys.executable, CHECK, args.model, ranged, "--hone", args.hone, "--seeds", "1", "--sizes",
                                f"{name}={','.join(map(str, sizes))}"], check=False)
        print(f"{name:>6}  {'own ms':>9}  {'range ms':>9}  range/own", flush=True)
        for size in sizes:
            most_bytes = max(most_bytes, compile_to(alone, f"{name}={size}"))
            out = subprocess.run([args.hone, "bench", alone, ranged, "--dim", f"{name}={size}", "--seconds",
                                  str(args.seconds), "--json"], check=True, capture_output=True, text=True).stdout
            turns = json.loads(out)
            ratio = 1 / turns["ratio"]
            print(f"{size:>6}  {turns['before']['ms']:9.3f}  {turns['after']['ms']:9.3f}  {ratio:.2f} "
                  f"({1 / turns['high']:.2f}-{1 / turns['low']:.2f})", flush=True)
            if ratio > args.most:
                slow.append(size)
        print(f"bytes: {range_bytes} of the range, at most {most_bytes} of one size: {range_bytes / most_bytes:.2f}")
        print(f"more than {args.most} times their own: {slow or 'none'}")
        return 0 if check.returncode == 0 and not slow and range_bytes <= 2 * most_bytes else 1


if __name__ == "__main__":
    sys.exit(main())
