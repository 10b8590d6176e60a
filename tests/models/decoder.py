"""A decoder with a cache of keys and values, as exporters of transformers write GPT-2: one graph for the prompt and for the
tokens after it, both lengths open."""
import math

import numpy as np
from onnx import TensorProto

from builder import Graph


def gpt2(seed, layers=12, hidden=768, heads=12, vocabulary=50257, positions=1152, name="gpt2"):
    """Radford et al. 2019, pre-norm, the head tied to the embedding. Inputs: input_ids [1, seq] and, of every layer,
    past_key_values.N.key and .value [1, heads, past, hidden / heads]; outputs: logits [1, seq, vocabulary] and the cache with
    the new tokens behind it, present.N.key and .value. There are positions for a past of 1024 and 128 new tokens."""
    g = Graph(name, seed)
    head = hidden // heads
    number = lambda at, value: g.constant(at, np.array(value, dtype=np.int64))
    axis0, zero, one = number("axis_0", [0]), number("zero", 0), number("one", 1)
    split, merge = number("split_heads", [1, -1, heads, head]), number("merge_heads", [1, -1, hidden])
    root, masked = g.constant("root_of_head", np.float32(math.sqrt(head))), g.constant("masked", np.float32(-3.4e38))
    half, cubic, ratio = (g.constant(at, np.float32(v))
                          for at, v in [("half", 0.5), ("cubic", 0.044715), ("ratio", math.sqrt(2 / math.pi))])
    three, unit = g.constant("three", np.float32(3)), g.constant("unit", np.float32(1))

    def dense(x, at, inputs, outputs, gain=1.0):
        w = g.normal(f"{at}.weight", (inputs, outputs), gain / math.sqrt(inputs))
        return g.op("Add", [g.op("MatMul", [x, w], name=f"/{at}/MatMul"), g.normal(f"{at}.bias", (outputs,), 0.05)],
                    name=f"/{at}/Add")

    def norm(x, at):
        scale, bias = g.uniform(f"{at}.weight", (hidden,), 0.7, 1.3), g.normal(f"{at}.bias", (hidden,), 0.1)
        return g.op("LayerNormalization", [x, scale, bias], name=f"/{at}", axis=-1, epsilon=1e-5)

    def gelu(x, at):     # by tanh
        inner = g.op("Mul", [g.op("Pow", [x, three], name=f"/{at}/Pow"), cubic], name=f"/{at}/Mul")
        inner = g.op("Mul", [g.op("Add", [x, inner], name=f"/{at}/Add"), ratio], name=f"/{at}/Mul_1")
        inner = g.op("Add", [g.op("Tanh", [inner], name=f"/{at}/Tanh"), unit], name=f"/{at}/Add_1")
        return g.op("Mul", [g.op("Mul", [x, half], name=f"/{at}/Mul_2"), inner], name=f"/{at}/Mul_3")

    ids = g.input("input_ids", [1, "seq"], TensorProto.INT64, domain=f"int[0,{vocabulary})")
    past = [[g.input(f"past_key_values.{layer}.{what}", [1, heads, "past", head]) for what in ("key", "value")]
            for layer in range(layers)]

    def length(x, axis, at):
        return g.op("Gather", [g.op("Shape", [x], name=f"/{at}/Shape"), number(f"{at}.axis", axis)], name=f"/{at}", axis=0)

    before = length(past[0][0], 2, "past")
    total = g.op("Add", [before, length(ids, 1, "seq")], name="/total")
    rows = g.op("Range", [before, total, one], name="/rows")
    columns = g.op("Range", [zero, total, one], name="/columns")
    rows_down = g.op("Unsqueeze", [rows, number("axis_1", [1])], name="/rows/Unsqueeze")
    seen = g.op("LessOrEqual", [g.op("Unsqueeze", [columns, axis0], name="/columns/Unsqueeze"), rows_down], name="/seen")

    words = g.normal("wte.weight", (vocabulary, hidden), 0.3)
    x = g.op("Add", [g.op("Gather", [words, ids], name="/wte/Gather", axis=0),
                     g.op("Gather", [g.normal("wpe.weight", (positions, hidden), 0.2), rows], name="/wpe/Gather", axis=0)],
             name="/embed/Add")
    for layer in range(layers):
        at = f"h.{layer}"
        qkv = dense(norm(x, f"{at}.ln_1"), f"{at}.attn.c_attn", hidden, 3 * hidden, 1.2)
        parts = g.op("Split", [qkv, number(f"{at}.sizes", [hidden] * 3)], name=f"/{at}/Split", outputs=3, axis=2)
        q, k, v = (g.op("Transpose", [g.op("Reshape", [part, split], name=f"/{at}/{what}/Reshape")],
                        name=f"/{at}/{what}/Transpose", perm=[0, 2, 1, 3]) for part, what in zip(parts, "qkv"))
        k, v = (g.op("Concat", [old, new], name=f"/{at}/{what}/Concat", outputs=f"present.{layer}.{what}", axis=2)
                for old, new, what in [(past[layer][0], k, "key"), (past[layer][1], v, "value")])
        scores = g.op("MatMul", [q, g.op("Transpose", [k], name=f"/{at}/key/Transpose", perm=[0, 1, 3, 2])],
                      name=f"/{at}/scores/MatMul")
        scores = g.op("Div", [scores, root], name=f"/{at}/scores/Div")
        scores = g.op("Where", [seen, scores, masked], name=f"/{at}/scores/Where")
        mixed = g.op("MatMul", [g.op("Softmax", [scores], name=f"/{at}/Softmax", axis=-1), v], name=f"/{at}/mix/MatMul")
        mixed = g.op("Reshape", [g.op("Transpose", [mixed], name=f"/{at}/mix/Transpose", perm=[0, 2, 1, 3]), merge],
                     name=f"/{at}/mix/Reshape")
        x = g.op("Add", [dense(mixed, f"{at}.attn.c_proj", hidden, hidden), x], name=f"/{at}/attn/Add")
        y = gelu(dense(norm(x, f"{at}.ln_2"), f"{at}.mlp.c_fc", hidden, 4 * hidden), f"{at}.mlp.act")
        x = g.op("Add", [x, dense(y, f"{at}.mlp.c_proj", 4 * hidden, hidden, 1.5)], name=f"/{at}/mlp/Add")
    head_of_words = g.op("Transpose", [words], name="/lm_head/Transpose", perm=[1, 0])
    g.op("MatMul", [norm(x, "ln_f"), head_of_words], name="/lm_head/MatMul", outputs="logits")
    g.output("logits", [1, "seq", vocabulary])
    for layer in range(layers):
        for what in ("key", "value"):
            g.output(f"present.{layer}.{what}", [1, heads, "total", head])
    return g
