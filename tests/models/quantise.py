#!/usr/bin/env python3
"""Quantises a model with ONNX Runtime's static quantisation, calibrated on seeded random inputs: QuantizeLinear and
DequantizeLinear around every operator, weights int8 by output channel.

    quantise.py MODEL.onnx -o OUT.onnx [--activations uint8|int8] [--samples 4]
"""
import argparse
import logging
import os
import tempfile

from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.preprocess import quant_pre_process

from reference import open_session, random_inputs


class Samples(CalibrationDataReader):
    def __init__(self, model, count):
        session = open_session(model)
        self.inputs = iter([random_inputs(model, session, 100 + seed) for seed in range(count)])

    def get_next(self):
        return next(self.inputs, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--activations", choices=["uint8", "int8"], default="uint8")
    parser.add_argument("--samples", type=int, default=4)
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        prepared = os.path.join(folder, "prepared.onnx")   # batch normalisation folded
        quant_pre_process(args.model, prepared, skip_symbolic_shape=True)
        quantize_static(prepared, args.output, Samples(prepared, args.samples), quant_format=QuantFormat.QDQ,
                        activation_type=QuantType.QUInt8 if args.activations == "uint8" else QuantType.QInt8,
                        weight_type=QuantType.QInt8, per_channel=True)


if __name__ == "__main__":
    main()
