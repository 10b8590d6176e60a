#!/usr/bin/env python3
"""A decoder with a cache of keys and values against ONNX Runtime, in turn: the prompt, and one token behind pasts of several
lengths, by one bundle for all of them.

    decoder_table.py gpt2.onnx --hone PATH [--at 0:128,16:1,..] [--most 0.90] [--rounds 11] [--seconds 0.5] [--threads N]

--at lists past:seq. Prints a line for each: the medians over the rounds, and their ratio with its interval (of the ratios of
the rounds). Exit code 1 where a ratio is above --most, or an output is not ONNX Runtime's (check_bundle.py).
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "compare"))
from turns import interval, median, take_turns  # noqa: E402

RANGES = ("past=0..1024", "seq=1..128")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--hone", required=True)
    parser.add_argument("--at", default="0:128,16:1,128:1,512:1,1000:1", metavar="PAST:SEQ,..")
    parser.add_argument("--most", type=float, default=0.9)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--bundle", help="use this one, made with --dim " + " --dim ".join(RANGES))
    args = parser.parse_args()
    args.bin, args.trials, args.python = os.path.dirname(os.path.abspath(args.hone)), 0, sys.executable
    points = [tuple(map(int, point.split(":"))) for point in args.at.split(",")]
    with tempfile.TemporaryDirectory() as args.work:
        bundle = args.bundle or os.path.join(args.work, "decoder.hone")
        if not args.bundle:
            dims = [word for text in RANGES for word in ("--dim", text)]
            subprocess.run([args.hone, "compile", args.model, "-o", bundle, "--untuned", "--threads", str(args.threads), *dims],
                           check=True)
        check = [os.path.join(HERE, "..", "models", "check_bundle.py"), args.model, bundle, "--hone", args.hone, "--seeds", "1"]
        for name, at in zip(("past", "seq"), zip(*points)):
            check += ["--sizes", f"{name}={','.join(map(str, at))}"]
        bad = subprocess.run([sys.executable, *check], stdout=subprocess.DEVNULL, check=False).returncode != 0
        print(f"{'past':>5} {'seq':>4} {'hone ms':>9} {'ort ms':>9}  hone/ort", flush=True)
        for past, seq in points:
            args.sizes = f"past={past},seq={seq}"
            ours, theirs = take_turns([("hone", "hone", bundle), ("onnxruntime", "onnxruntime", args.model)], args)
            ratios = [a / b for a, b in zip(ours.ms, theirs.ms)]
            low, high = interval(ratios)
            print(f"{past:>5} {seq:>4} {median(ours.ms):9.3f} {median(theirs.ms):9.3f}  {median(ratios):.2f} "
                  f"({low:.2f}-{high:.2f})", flush=True)
            bad |= median(ratios) > args.most
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
