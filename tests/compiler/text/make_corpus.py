#!/usr/bin/env python3
"""Writes the corpus of programs that TVM prints: tests/compiler/text/corpus/*.txt, one file a network.

    python -m venv venv
    venv/bin/pip install apache-tvm==0.25.0 apache-tvm-ffi==0.1.12 onnx numpy
    venv/bin/python tests/compiler/text/make_corpus.py MODELS_DIR -o tests/compiler/text/corpus

MODELS_DIR holds what tests/models/make_models.py writes (resnet18.onnx ...); models that are not there are left out.
Three more networks are made here: a LLaMA block with a symbolic length, a GPT-2 block, and a block of a diffusion UNet.

Operators that none of these has are in operators.txt, each legalised and scheduled by DLight.

Of each network: its operators legalised one by one, fused, and scheduled: by random draws from MetaSchedule's space for
the CPU and for CUDA, and by DLight for CUDA. The graph function of the fused module is a program too. Of programs
that differ in their numbers alone two are kept. In a file, every program follows a line `# ==== network/stage/function`.

TVM is needed to write the corpus, never to test with it.
"""
import argparse
import collections
import os
import re
import sys

import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.s_tir import dlight
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

CPU = {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4}
GPU = {"kind": "cuda", "arch": "sm_80", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152,
       "thread_warp_size": 32}


class LlamaBlock(nn.Module):
    """Attention with rotary positions over a symbolic length, and the gated feed-forward part."""

    def __init__(self, width=256, heads=4, hidden=688):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.norm1 = nn.RMSNorm(width, axes=-1, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width, axes=-1, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, mask):
        b, n, w = x.shape
        q, k, v = nn.op.split(self.qkv(self.norm1(x)), 3, axis=-1)
        q, k, v = (nn.op.permute_dims(nn.op.reshape(t, (b, n, self.heads, self.head)), [0, 2, 1, 3]) for t in (q, k, v))
        scores = nn.op.matmul(q, nn.op.permute_dims(k, [0, 1, 3, 2])) / (self.head**0.5)
        weights = nn.op.softmax(nn.op.add(scores, mask), axis=-1)
        mixed = nn.op.reshape(nn.op.permute_dims(nn.op.matmul(weights, v), [0, 2, 1, 3]), (b, n, w))
        x = x + self.out(mixed)
        gate, up = nn.op.split(self.gate_up(self.norm2(x)), 2, axis=-1)
        return x + self.down(nn.op.silu(gate) * up)


class Gpt2Block(nn.Module):
    def __init__(self, width=192, heads=3, vocab=1000, length=64):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(length, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, ids, positions):
        x = self.wte(ids) + self.wpe(positions)
        b, n, w = x.shape
        q, k, v = nn.op.split(self.qkv(self.norm1(x)), 3, axis=-1)
        q, k, v = (nn.op.permute_dims(nn.op.reshape(t, (b, n, self.heads, self.head)), [0, 2, 1, 3]) for t in (q, k, v))
        scores = nn.op.matmul(q, nn.op.permute_dims(k, [0, 1, 3, 2])) * (self.head**-0.5)
        mixed = nn.op.matmul(nn.op.softmax(scores, axis=-1), v)
        x = x + self.out(nn.op.reshape(nn.op.permute_dims(mixed, [0, 2, 1, 3]), (b, n, w)))
        return x + self.down(nn.op.gelu(self.up(self.norm2(x))))


class UnetBlock(nn.Module):
    def __init__(self, channels=64, wider=128):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(16, channels), nn.GroupNorm(16, wider)
        self.conv1 = nn.Conv2D(channels, wider, 3, padding=1)
        self.conv2 = nn.Conv2D(wider, wider, 3, padding=1)
        self.skip = nn.Conv2D(channels, wider, 1)
        self.time = nn.Linear(channels, wider)
        self.down = nn.Conv2D(wider, wider, 3, stride=2, padding=1)

    def forward(self, x, t):
        h = self.conv1(nn.op.silu(self.norm1(x)))
        h = h + nn.op.reshape(self.time(nn.op.silu(t)), (1, 128, 1, 1))
        h = self.conv2(nn.op.silu(self.norm2(h))) + self.skip(x)
        return nn.op.interpolate(self.down(h), scale_factor=2.0, mode="nearest")


def made_networks():
    tensor = nn.spec.Tensor
    yield "llama_block", LlamaBlock(), {"x": tensor([1, "n", 256], "float32"), "mask": tensor([1, 1, "n", "n"], "float32")}
    half = LlamaBlock()
    half.to("float16")
    yield "llama_block_half", half, {"x": tensor([1, 32, 256], "float16"), "mask": tensor([1, 1, 32, 32], "float16")}
    yield "gpt2_block", Gpt2Block(), {"ids": tensor([1, 64], "int32"), "positions": tensor([1, 64], "int32")}
    yield "unet_block", UnetBlock(), {"x": tensor([1, 64, 16, 16], "float32"), "t": tensor([1, 64], "float32")}


def networks(folder):
    for name in ("mlp", "resnet18", "resnet50", "mobilenetv2", "bert_base"):
        path = os.path.join(folder, f"{name}.onnx")
        if os.path.exists(path):
            import onnx
            from tvm.relax.frontend.onnx import from_onnx
            module = from_onnx(onnx.load(path), keep_params_in_input=True)
            yield name, relax.transform.DecomposeOpsForInference()(module)
    for name, network, inputs in made_networks():
        yield name, network.export_tvm(spec={"forward": inputs})[0]


def tensor_functions(module):
    return {var.name_hint: f for var, f in module.functions.items() if isinstance(f, tvm.tirx.PrimFunc)}


def text_of(function, name):
    module = tvm.IRModule({name: function.with_attr("global_symbol", name)})
    return module.script(show_meta=False)


def draws(function, target, count):
    """`count` random schedules of the space that MetaSchedule searches, with its postprocessing."""
    with Target(target):
        context = ms.TuneContext(mod=function, target=Target(target), space_generator="post-order-apply", rand_state=7,
                                 num_threads=1)
        taken = 0
        for schedule in reversed(context.generate_design_space()):
            if taken == count:
                return
            ok = True
            for postproc in context.space_generator.postprocs or []:
                ok = ok and postproc.apply(schedule)
            if ok:
                taken += 1
                yield schedule.mod["main"]


def by_dlight(function):
    with Target(GPU):
        module = tvm.IRModule({"main": function})
        return dlight.ApplyDefaultSchedule(dlight.gpu.Matmul(), dlight.gpu.GEMV(), dlight.gpu.Reduction(),
                                           dlight.gpu.GeneralReduction(), dlight.gpu.Fallback())(module)["main"]


def operators():
    """Names, what makes the operator of its arguments, and the arguments' shapes and types."""
    op, n, m = relax.op, tvm.tirx.Var("n", "int64"), tvm.tirx.Var("m", "int64")
    f32, f16, i8, u8, i32, i64 = "float32", "float16", "int8", "uint8", "int32", "int64"
    yield "argmax", lambda x: op.argmax(x, axis=1), ((6, 40), f32)
    yield "argmax_of_sizes", lambda x: op.argmax(x, axis=-1, keepdims=True), ((n, m), f32)
    yield "gather_elements", lambda x, i: op.gather_elements(x, i, axis=1), ((5, 16), f32), ((5, 3), i64)
    yield "take_of_bytes", lambda x, i: op.take(x, i, axis=1), ((5, 16), i8), ((n,), i64)
    yield "scatter_of_bytes", lambda x, i, u: op.scatter_elements(x, i, u, axis=0), \
        ((n, 16), i8), ((3, 16), i64), ((3, 16), i8)
    yield "scatter_nd", lambda x, i, u: op.scatter_nd(x, i, u, reduction="max"), \
        ((8, 16), f32), ((3, 1), i32), ((3, 16), f32)
    yield "slices_of_sizes", lambda x, b, e, s: op.dynamic_strided_slice(x, b, e, s), \
        ((9, 16), f32), ((2,), i64), ((2,), i64), ((2,), i64)
    yield "cosh", op.cosh, ((4, 33), f32)
    yield "asinh", op.asinh, ((4, 33), f16)
    yield "atan2", op.atan2, ((4, 33), f32), ((4, 33), f32)
    yield "log_softmax", lambda x: op.nn.log_softmax(x), ((3, 8, 64), f16)
    yield "quantize", lambda x, s, z: op.quantize(x, s, z, axis=1, out_dtype=u8), ((4, 9), f32), ((9,), f32), ((9,), i8)
    yield "dequantize", lambda x, s, z: op.dequantize(x, s, z, axis=-1, out_dtype=f32), \
        ((n, 9), u8), ((9,), f32), ((9,), i8)
    yield "product_of_bytes", lambda a, b: op.matmul(a, b, out_dtype=i32), ((1, 256), i8), ((256, 64), i8)
    yield "resize", lambda x: op.image.resize2d(x, (7, 13), method="linear"), ((1, 3, 5, 9), f32)
    yield "valid_counts", lambda b: op.vision.get_valid_counts(b, 0.5), ((1, 20, 6), f32)


def operator_module(build, arguments):
    builder = relax.BlockBuilder()
    arguments = [relax.Var(f"x{i}", relax.TensorStructInfo(*argument)) for i, argument in enumerate(arguments)]
    with builder.function("main", arguments):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(build(*arguments)))
        builder.emit_func_output(result)
    return relax.transform.LegalizeOps()(relax.transform.DecomposeOpsForInference()(builder.get()))


class Corpus:
    def __init__(self, most_scheduled):
        self.alike, self.programs, self.most_scheduled = collections.Counter(), [], most_scheduled

    def add(self, title, text):
        body = "\n".join(line for line in text.splitlines() if line.strip())
        key = re.sub(r"\d+", "0", re.sub(r"def \w+\(", "def f(", body))
        self.alike[key] += 1
        if self.alike[key] <= 2:
            self.programs.append((title, body))

    def stage(self, name, stage, functions):
        for function in functions:
            self.add(f"{name}/{stage}/{function}", text_of(functions[function], function))

    def operators(self):
        for name, build, *arguments in operators():
            functions = tensor_functions(operator_module(build, arguments))
            self.stage(name, "legalised", functions)
            for function in functions:
                try:
                    self.add(f"{name}/dlight0/{function}",
                             text_of(by_dlight(functions[function].with_attr("global_symbol", "main")), function))
                except Exception as error:  # what calls libraries has no schedule
                    reason = (str(error).strip().splitlines() or ["?"])[-1]
                    print(f"{name}/dlight0/{function}: no schedule: {reason[:100]}", file=sys.stderr)

    def network(self, name, module):
        legal = relax.transform.LegalizeOps()(module)
        self.stage(name, "legalised", tensor_functions(legal))
        fused = relax.transform.AnnotateTIROpPattern()(legal)
        fused = relax.transform.FoldConstant()(fused)
        fused = relax.transform.FuseTIR()(relax.transform.FuseOps()(fused))
        functions = tensor_functions(fused)
        self.stage(name, "fused", functions)
        graphs = tvm.IRModule({v: f for v, f in fused.functions.items() if not isinstance(f, tvm.tirx.PrimFunc)})
        self.add(f"{name}/graph/main", graphs.script(show_meta=False))
        for function in list(functions)[: self.most_scheduled]:
            base = functions[function].with_attr("global_symbol", "main")
            for stage, programs in (("cpu", lambda: draws(base, CPU, 2)), ("cuda", lambda: draws(base, GPU, 1)),
                                    ("dlight", lambda: [by_dlight(base)])):
                try:
                    for i, program in enumerate(programs()):
                        self.add(f"{name}/{stage}{i}/{function}", text_of(program, function))
                except Exception as error:  # a space that TVM refuses to make for this function
                    reason = (str(error).strip().splitlines() or ["?"])[-1]
                    print(f"{name}/{stage}/{function}: no schedule: {reason[:100]}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--most-scheduled", type=int, default=10, help="functions of a network that are scheduled")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    corpus, total = Corpus(options.most_scheduled), 0
    parts = [(name, lambda m=module, n=name: corpus.network(n, m)) for name, module in networks(options.models)]
    for name, write in parts + [("operators", corpus.operators)]:
        corpus.programs = []
        write()
        with open(os.path.join(options.output, f"{name}.txt"), "w") as out:
            for title, body in corpus.programs:
                out.write(f"# ==== {title}\n{body}\n\n")
        total += len(corpus.programs)
        print(f"{name}: {len(corpus.programs)} programs")
    print(f"{total} programs")


if __name__ == "__main__":
    main()
