"""A small builder of ONNX graphs: nodes are appended in order, weights come from one seeded generator per tensor."""
import hashlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


class Graph:
    """Collects nodes and initializers of one model. Every weight depends on (model, weight name, seed) alone, so adding
    a layer changes no other layer's numbers."""

    def __init__(self, name, seed=0):
        self.name = name
        self.seed = seed
        self.nodes = []
        self.initializers = []
        self.inputs = []
        self.outputs = []
        self.metadata = {}
        self._count = {}

    def random(self, name):
        digest = hashlib.sha256(f"{self.name}/{name}/{self.seed}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))

    def input(self, name, shape, dtype=TensorProto.FLOAT, domain=None):
        """`domain` says which values make sense, such as "int[0,30522)"; kept in the model's metadata."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        if domain:
            self.metadata[f"domain.{name}"] = domain
        return name

    def output(self, name, shape=None, dtype=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def normal(self, name, shape, std, mean=0.0):
        values = self.random(name).standard_normal(shape, dtype=np.float32) * np.float32(std) + np.float32(mean)
        return self.constant(name, values)

    def uniform(self, name, shape, low, high):
        values = self.random(name).random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low)
        return self.constant(name, values)

    def op(self, kind, inputs, name=None, outputs=None, domain="", **attributes):
        """Appends a node and returns its output (a list of them when `outputs` is a number above 1 or a list)."""
        if name is None:
            self._count[kind] = self._count.get(kind, -1) + 1
            name = f"{kind}_{self._count[kind]}"
        if outputs is None:
            results = [f"{name}_output_0"]
        elif isinstance(outputs, int):
            results = [f"{name}_output_{i}" for i in range(outputs)]
        else:
            results = [outputs] if isinstance(outputs, str) else list(outputs)
        self.nodes.append(helper.make_node(kind, inputs, results, name=name, domain=domain, **attributes))
        return results[0] if len(results) == 1 else results

    def model(self, opset=OPSET, ir_version=IR_VERSION):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version,
                                  producer_name="hone make_models")
        if self.metadata:
            helper.set_model_props(model, self.metadata)
        return model

    def save(self, path, check=True):
        model = self.model()
        if check:
            onnx.checker.check_model(model)
        onnx.save(model, path)
        return path
