"""Seeded random models with control flow and recurrence, for make_op_cases.py: LSTM, Loop, If and Scan.

Bodies are random chains of operators over matrices of one shape. Conditions depend on the data: a loop ends, or a branch is
taken, as the sum of a value says. Every value is kept within [-1, 1] or so, that differences in rounding stay small.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PROGRAMS = 20  # of each kind
F = np.float32


def tensor(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


class Body:
    """Nodes over matrices of one shape. Names of a body start with its prefix, since graphs inside others share them."""

    def __init__(self, random, prefix, shape):
        self.random, self.prefix, self.shape = random, prefix, shape
        self.nodes, self.initializers = [], []

    def name(self):
        return f"{self.prefix}{len(self.nodes)}"

    def node(self, op, inputs, **attributes):
        result = self.name()
        self.nodes.append(helper.make_node(op, inputs, [result], **attributes))
        return result

    def constant(self, value):
        name = f"{self.prefix}c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def step(self, pool):
        """One more value, made of some of the pool."""
        rows, columns = self.shape
        pick = lambda: pool[self.random.integers(len(pool))]
        kind = self.random.integers(8)
        if kind < 2:
            return self.node(["Add", "Sub"][kind], [self.node("Tanh", [pick()]), self.constant(self.uniform(columns))])
        if kind == 2:
            return self.node("Mul", [pick(), self.node("Sigmoid", [pick()])])
        if kind == 3:
            return self.node("Tanh", [self.node("MatMul", [pick(), self.constant(self.uniform(columns, columns))])])
        if kind == 4:
            return self.node("Tanh", [self.node("MatMul", [self.constant(self.uniform(rows, rows)), pick()])])
        if kind == 5:
            return self.node("Max", [pick(), self.node("Neg", [pick()])])
        if kind == 6:
            mean = self.node("ReduceMean", [pick()], axes=[int(self.random.integers(2))], keepdims=1)
            return self.node("Sub", [pick(), mean])
        return self.node("Where", [self.node("Less", [pick(), pick()]), pick(), pick()])

    def uniform(self, *shape):
        return (self.random.random(shape) * 2 - 1).astype(F)

    def condition(self, value, bound):
        """Whether the sum of the value is above the bound."""
        total = self.node("ReduceSum", [value], keepdims=0)
        return self.node("Greater", [total, self.constant(np.asarray(bound, F))])

    def branch(self, pool, depth):
        """If, with graphs that read what is around them."""
        chosen = self.condition(pool[-1], self.random.normal())
        count = int(self.random.integers(1, 3))
        graphs = []
        for side in ("t", "e"):
            inner = Body(self.random, f"{self.name()}{side}", self.shape)
            values = inner.chain(list(pool), int(self.random.integers(1, 4)), depth - 1)
            outputs = [inner.node("Identity", [values[-1 - i]]) for i in range(count)]
            graphs.append(inner.graph([], [tensor(o, self.shape) for o in outputs]))
        results = [f"{self.name()}r{i}" for i in range(count)]
        self.nodes.append(helper.make_node("If", [chosen], results, then_branch=graphs[0], else_branch=graphs[1]))
        return results

    def chain(self, pool, length, depth=0):
        for _ in range(length):
            if depth > 0 and self.random.random() < 0.3:
                pool.extend(self.branch(pool, depth))
            else:
                pool.append(self.step(pool))
        return pool

    def graph(self, inputs, outputs):
        return helper.make_graph(self.nodes, "body", inputs, outputs, self.initializers)


def finish(body, inputs, outputs, feeds):
    model = helper.make_model(body.graph(inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model, feeds


def start(random, count=2):
    """A body whose inputs are matrices, with values for them."""
    shape = tuple(int(n) for n in random.integers(1, 8, 2))
    body = Body(random, "v", shape)
    feeds = {f"x{i}": body.uniform(*shape) for i in range(count)}
    return body, [tensor(name, shape) for name in feeds], feeds


def if_program(random):
    body, inputs, feeds = start(random)
    pool = body.branch(body.chain(list(feeds), 2), depth=2)
    result = body.node("Identity", [body.chain(pool, 2)[-1]])
    return finish(body, inputs, [tensor(result, body.shape)], feeds)


def loop_program(random):
    """Two values are carried. Half of the loops end when the data says so, the others stack up a value each time."""
    body, inputs, feeds = start(random)
    ends_by_data = bool(random.integers(2))
    inner = Body(random, "b", body.shape)
    pool = inner.chain(["h", "g"], int(random.integers(2, 5)), depth=1)
    again = (inner.condition(pool[-1], random.normal() - 1) if ends_by_data else inner.node("Identity", ["going"]))
    results = [inner.node("Identity", [pool[-1]]), inner.node("Identity", [pool[-2]])]
    stacked = [] if ends_by_data else [inner.node("Mul", [pool[-1], pool[0]])]
    graph = inner.graph(
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("going", TensorProto.BOOL, []),
         tensor("h", body.shape), tensor("g", body.shape)],
        [helper.make_tensor_value_info(again, TensorProto.BOOL, [])] + [tensor(r, body.shape) for r in results + stacked])
    times = int(random.integers(1, 7))
    first = body.condition("x0", random.normal() - 1) if ends_by_data and random.integers(2) else body.constant(np.asarray(True))
    outputs = [f"y{i}" for i in range(2 + len(stacked))]
    body.nodes.append(helper.make_node("Loop", [body.constant(np.asarray(times, np.int64)), first, "x0", "x1"], outputs, body=graph))
    shapes = [body.shape, body.shape, (times, *body.shape)]
    return finish(body, inputs, [tensor(o, s) for o, s in zip(outputs, shapes)], feeds)


def scan_program(random):
    """One state and one or two sequences, along any axis, in any direction."""
    body, inputs, feeds = start(random, count=1)
    steps, sequences = int(random.integers(1, 7)), int(random.integers(1, 3))
    inner = Body(random, "b", body.shape)
    names = [f"s{i}" for i in range(sequences)]
    pool = inner.chain(["h"] + names, int(random.integers(2, 5)), depth=1)
    results = [inner.node("Identity", [pool[-1]]), inner.node("Tanh", [pool[-2]])]
    graph = inner.graph([tensor(name, body.shape) for name in ["h"] + names], [tensor(r, body.shape) for r in results])
    axes = [int(a) for a in random.integers(0, 3, sequences)]
    out_axis = int(random.integers(3))
    for name, axis in zip(names, axes):
        shape = list(body.shape)
        shape.insert(axis, steps)
        feeds[f"x_{name}"] = body.uniform(*shape)
        inputs.append(tensor(f"x_{name}", shape))
    body.nodes.append(helper.make_node(
        "Scan", list(feeds), ["y0", "y1"], body=graph, num_scan_inputs=sequences, scan_input_axes=axes,
        scan_input_directions=[int(d) for d in random.integers(0, 2, sequences)], scan_output_axes=[out_axis],
        scan_output_directions=[int(random.integers(2))]))
    stacked = list(body.shape)
    stacked.insert(out_axis, steps)
    return finish(body, inputs, [tensor("y0", body.shape), tensor("y1", stacked)], feeds)


def lstm_program(random):
    body = Body(random, "v", (1, 1))
    steps, batch, width, hidden = (int(n) for n in random.integers(1, 9, 4))
    direction = ["forward", "reverse", "bidirectional"][random.integers(3)]
    ways = 2 if direction == "bidirectional" else 1
    feeds = {"x": body.uniform(steps, batch, width)}
    given = lambda *shape: body.constant(body.uniform(*shape)) if random.integers(2) else ""

    def fed(name, *shape):
        if not random.integers(2):
            return ""
        feeds[name] = body.uniform(*shape)
        return name

    arguments = ["x", body.constant(body.uniform(ways, 4 * hidden, width)), body.constant(body.uniform(ways, 4 * hidden, hidden)),
                 given(ways, 8 * hidden), "", fed("h", ways, batch, hidden), fed("c", ways, batch, hidden), given(ways, 3 * hidden)]
    attributes = {"hidden_size": hidden, "direction": direction}
    if random.integers(2):
        attributes["activations"] = [str(a) for _ in range(ways) for a in ("Sigmoid", random.choice(["Tanh", "Relu", "Softsign"]), "Tanh")]
    if random.integers(3) == 0:
        attributes["clip"] = 0.5
    body.nodes.append(helper.make_node("LSTM", arguments, ["y", "y_h", "y_c"], **attributes))
    shapes = {"y": (steps, ways, batch, hidden), "y_h": (ways, batch, hidden), "y_c": (ways, batch, hidden)}
    return finish(body, [tensor(n, v.shape) for n, v in feeds.items()], [tensor(n, s) for n, s in shapes.items()], feeds)


KINDS = {"LSTM": lstm_program, "Loop": loop_program, "If": if_program, "Scan": scan_program}


def programs():
    """(operator, number, model, inputs by name) of each."""
    for kind, (op, make) in enumerate(KINDS.items()):
        for number in range(PROGRAMS):
            yield op, number, *make(np.random.default_rng([kind, number]))
