#!/usr/bin/env python3
"""How the graphs in exported/ were made: exports published networks with PyTorch and takes the weights out.

    pip install torch==2.15.0 torchvision==0.29.2 transformers==5.23.0 onnxscript==0.7.2 onnx==1.23.2
    export_graphs.py -o exported [NAME...]

Needed only to make the graphs anew: fill_weights.py, which gives them weights again, needs neither PyTorch nor a network.
A graph NAME.onnx keeps every node, name, shape and small constant as the exporter left them. Tensors of more than 64
elements become external data in NAME.onnx.data, which is not kept: NAME.json says for each where it lies in that file and
how its numbers are distributed. What the exporter notes about the machine it ran on (stack traces) is taken out.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

KEEP_ELEMENTS = 64
ALIGNMENT = 64


def networks():
    """name -> (module, example inputs, keyword arguments of the export)."""
    import torch
    import torchvision

    image = torch.randn(1, 3, 224, 224)

    class OnlyOut(torch.nn.Module):
        def __init__(self, module, pick):
            super().__init__()
            self.module, self.pick = module, pick

        def forward(self, *args):
            return self.pick(self.module(*args))

    def resnet18():
        return torchvision.models.resnet18(weights=None), (image,), {"dynamo": True, "input_names": ["x"]}

    def mobilenet_v3_small():
        return torchvision.models.mobilenet_v3_small(weights=None), (image,), {"dynamo": True, "input_names": ["x"]}

    def lraspp():
        module = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
        return OnlyOut(module, lambda y: y["out"]), (image,), {"dynamo": True, "input_names": ["x"]}

    def densenet121():
        how = {"dynamo": False, "opset_version": 17, "input_names": ["x"]}
        return torchvision.models.densenet121(weights=None), (image,), how

    def efficientnet_b0():
        return torchvision.models.efficientnet_b0(weights=None), (image,), {"dynamo": True, "input_names": ["x"]}

    def mobilenet_v2():
        return torchvision.models.mobilenet_v2(weights=None), (image,), {"dynamo": True, "input_names": ["x"]}

    def shufflenet_v2():
        return torchvision.models.shufflenet_v2_x1_0(weights=None), (image,), {"dynamo": True, "input_names": ["x"]}

    def vit():
        module = torchvision.models.VisionTransformer(224, 16, num_layers=3, num_heads=12, hidden_dim=768, mlp_dim=3072)
        return module, (image,), {"dynamo": True, "input_names": ["x"]}

    def swin():
        module = torchvision.models.SwinTransformer([4, 4], 32, [2], [2], [7, 7], num_classes=100)
        return module, (torch.randn(1, 3, 56, 56),), {"dynamo": False, "opset_version": 17, "input_names": ["x"]}

    def bert():
        import transformers
        config = transformers.BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                         intermediate_size=512, max_position_embeddings=64, attn_implementation="eager")
        ids = torch.randint(0, 1000, (1, 32))
        return (OnlyOut(transformers.BertModel(config), lambda y: (y.last_hidden_state, y.pooler_output)),
                (ids, torch.ones(1, 32, dtype=torch.int64)),
                {"dynamo": False, "opset_version": 17, "input_names": ["input_ids", "attention_mask"]})

    def gpt2():
        import transformers
        config = transformers.GPT2Config(vocab_size=1000, n_positions=64, n_embd=128, n_layer=2, n_head=4, use_cache=False)
        ids = torch.randint(0, 1000, (1, 24))
        return (OnlyOut(transformers.GPT2LMHeadModel(config), lambda y: y.logits), (ids,),
                {"dynamo": True, "input_names": ["input_ids"]})

    return {f.__name__: f for f in (resnet18, mobilenet_v2, mobilenet_v3_small, efficientnet_b0, densenet121, shufflenet_v2,
                                    lraspp, vit, swin, bert, gpt2)}


# Networks whose initial weights make activations vanish in random inference: the deviation of their convolutions' and
# classifiers' weights is gain / sqrt(inputs of an output) instead. (With batch norms folded nothing else scales them up.)
GAINS = {"mobilenet_v2": 1.5, "mobilenet_v3_small": 1.5, "efficientnet_b0": 1.5, "shufflenet_v2": 1.5, "lraspp": 1.25,
         "swin": 4.0}
DOMAINS = {"bert": {"input_ids": "int[0,1000)", "attention_mask": "int[0,2)"}, "gpt2": {"input_ids": "int[0,1000)"}}


def strip_notes(model):
    """Takes out what only helps the exporter's developers."""
    def clean(graph):
        del graph.metadata_props[:]
        graph.doc_string = ""
        for node in graph.node:
            del node.metadata_props[:]
            node.doc_string = ""
            for attribute in node.attribute:
                attribute.doc_string = ""
                if attribute.HasField("g"):
                    clean(attribute.g)
        for value in [*graph.value_info, *graph.input, *graph.output]:
            del value.metadata_props[:]
            value.doc_string = ""
        for tensor in graph.initializer:
            del tensor.metadata_props[:]
            tensor.doc_string = ""

    del model.metadata_props[:]
    model.doc_string = ""
    clean(model.graph)
    for function in model.functions:
        function.doc_string = ""
        del function.metadata_props[:]
        for node in function.node:
            del node.metadata_props[:]
            node.doc_string = ""


def all_tensors(graph):
    """Initializers and the values of Constant nodes."""
    yield from ((t.name, t) for t in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.name == "value":
                yield node.output[0], attribute.t


def take_weights_out(model, name):
    """Replaces large tensors by external data that is not there; gives the description of each."""
    weights, offset = [], 0
    for tensor_name, tensor in all_tensors(model.graph):
        values = numpy_helper.to_array(tensor)
        if values.size <= KEEP_ELEMENTS or not np.issubdtype(values.dtype, np.floating):
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            continue
        if not np.isfinite(values).all() or len(np.unique(values)) <= 8 and values.std() > 0:
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))      # a mask, not weights
            continue
        entry = {"name": tensor_name, "shape": list(values.shape), "offset": offset, "mean": float(f"{values.mean():.4g}"),
                 "std": float(f"{values.std():.4g}")}
        if name in GAINS and values.ndim in (2, 4) and values.std() > 0:
            entry["std"] = float(f"{GAINS[name] / np.sqrt(np.prod(values.shape[1:])):.4g}")
        weights.append(entry)
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        for key, value in [("location", f"{name}.onnx.data"), ("offset", offset), ("length", values.size * 4)]:
            tensor.external_data.add(key=key, value=str(value))
        offset += -(-values.size * 4 // ALIGNMENT) * ALIGNMENT
    return weights


def train_a_little(module):
    """Makes what is all zeros or all ones at the start differ, as training does: the exporter drops biases of zero."""
    import torch
    with torch.no_grad():
        for key, value in [*module.named_parameters(), *module.named_buffers()]:
            if value.ndim == 1 and value.is_floating_point():
                noise = torch.rand_like(value) * 0.6 - 0.3
                value.add_(noise if value.mean() > 0.5 else noise * 0.5)


def export(name, make, folder):
    import torch
    torch.manual_seed(0)
    module, inputs, how = make()
    train_a_little(module)
    module.eval()
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "model.onnx")
        torch.onnx.export(module, inputs, path, **how)
        model = onnx.load(path)
    strip_notes(model)
    weights = take_weights_out(model, name)
    if name in DOMAINS:
        onnx.helper.set_model_props(model, {f"domain.{k}": v for k, v in DOMAINS[name].items()})
    path = os.path.join(folder, f"{name}.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString(deterministic=True))
    with open(os.path.join(folder, f"{name}.json"), "w") as file:
        file.write('{"exporter": ' + json.dumps(f"PyTorch {torch.__version__.split('+')[0]}, {'dynamo' if how['dynamo'] else 'script'}")
                   + ',\n "weights": [\n' + ",\n".join("  " + json.dumps(w) for w in weights) + "\n]}\n")
    kinds = sorted({n.op_type for n in model.graph.node})
    print(f"{name}: opset {model.opset_import[0].version}, {len(model.graph.node)} nodes, {os.path.getsize(path)} bytes, "
          f"{len(weights)} weights: {' '.join(kinds)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    for name, make in networks().items():
        if not args.names or name in args.names:
            export(name, make, args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
