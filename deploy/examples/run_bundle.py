#!/usr/bin/env python3
"""Runs a bundle that `hone compile` made, in Python, and shows where the time goes.

    pip install ./deploy/python        # builds the wheel; needs a C++ compiler, CMake and Python's headers
    python run_bundle.py model.hone
"""
import sys

import hone
import numpy as np

model = hone.load(sys.argv[1])
print(model)
inputs = {}
for info in model.inputs.values():
    inputs[info.name] = model.empty(info.name)  # aligned, so that a run reads it where it lies
    if info.dtype == "float32":
        inputs[info.name][...] = np.random.default_rng(0).uniform(-1, 1, info.shape)
for name, value in model.run(inputs).items():
    print(f"{name}: {value.dtype} {value.shape}, from {value.min():.4g} to {value.max():.4g}")
steps = sorted(model.profile(**inputs), key=lambda step: -step.us)
total = sum(step.us for step in steps)
for step in steps[:5]:
    print(f"{step.us:10.1f} us {100 * step.us / total:5.1f} %  {step.name}")
