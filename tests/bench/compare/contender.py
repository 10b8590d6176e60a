"""One contender of a comparison: loads a model, then runs it for a turn whenever it reads "run", and answers with the median in
milliseconds.

    contender.py KIND MODEL THREADS SECONDS TRIALS [SIZES]

SIZES gives hone and onnxruntime the sizes of dimensions that the model leaves open: past=16,seq=1.
KIND and its settings: hone (a bundle through the C interface of $HONE_RUNTIME, pinned threads); onnxruntime (all
optimisations, sequential, bound inputs and outputs); openvino (latency hint, float32); openvino-bf16 (the same, bfloat16);
torch (oneDNN: the operator scripted, frozen and optimised for inference, weights packed beforehand); torch-bf16 (the same, all
in bfloat16); torch-int8 (an operator on bytes, weights packed, the fastest of the ways that PyTorch has); openblas (NumPy's
product, for the one operator that it has); tvm (MetaSchedule with TRIALS a task, constants packed).
"""
import os
import sys
import time

kind, path, threads, seconds, trials = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
sizes = {name: int(size) for name, size in (text.split("=") for text in ",".join(sys.argv[6:7]).split(",") if text)}
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS"):
    os.environ[name] = str(threads)
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import numpy as np  # noqa: E402


def values(shape, dtype):
    rng = np.random.default_rng(1)
    if np.issubdtype(np.dtype(dtype), np.integer):
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def hone():
    from hone_bundle import Bundle
    return Bundle(os.environ["HONE_RUNTIME"], path, threads, values, sizes).run


def onnxruntime():
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int8)": "int8",
             "tensor(uint8)": "uint8", "tensor(bool)": "bool"}
    binding = session.io_binding()
    for tensor in session.get_inputs():
        binding.bind_cpu_input(tensor.name, values([d if isinstance(d, int) else sizes.get(d, 1) for d in tensor.shape],
                                                  types[tensor.type]))
    for tensor in session.get_outputs():
        binding.bind_output(tensor.name)
    return lambda: session.run_with_iobinding(binding)


def openvino(precision="f32"):
    import openvino as ov
    core = ov.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1})
    request = compiled.create_infer_request()
    for tensor in compiled.inputs:
        shape = [d.get_length() if d.is_static else 1 for d in tensor.partial_shape]
        request.set_tensor(tensor, ov.Tensor(values(shape, tensor.element_type.to_dtype())))
    return request.infer


def torch(precision="float32"):
    import torch as t
    from one_operator import as_torch
    t.set_num_threads(threads)
    module, shape = as_torch(path)
    x, module = t.from_numpy(values(shape, "float32")).to(getattr(t, precision)), module.to(getattr(t, precision))
    if x.dim() == 4:
        x = x.contiguous(memory_format=t.channels_last)
        module = module.to(memory_format=t.channels_last)
    with t.inference_mode(False), t.no_grad():
        scripted = t.jit.optimize_for_inference(t.jit.freeze(t.jit.trace(module.eval(), x)))
    def run():
        with t.no_grad():
            scripted(x)
    for _ in range(3):
        run()
    return run


def torch_int8():
    import torch as t
    from one_operator import as_quantised_torch
    t.set_num_threads(threads)

    def median_ms(run):
        times = []
        for _ in range(11):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return sorted(times)[5]

    return min(((median_ms(run), run) for run in as_quantised_torch(path, values)), key=lambda timed: timed[0])[1]


def openblas():
    from one_operator import weights_of_products
    weights, rows = weights_of_products(path)
    x = values((rows, weights[0].shape[0]), "float32")
    outs = [np.empty((rows, w.shape[1]), np.float32) for w in weights]
    def run():
        y = x
        for w, out in zip(weights, outs):
            y = np.matmul(y, w, out=out)
    return run


def tvm():
    import tempfile
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    module = from_onnx(onnx.load(path), keep_params_in_input=False)
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": threads})
    with target:
        module = relax.get_pipeline("static_shape_tuning", target=target, work_dir=tempfile.mkdtemp(), total_trials=trials)(module)
    vm = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    inputs = [tvm.runtime.tensor(values([int(d) for d in p.struct_info.shape], p.struct_info.dtype)) for p in module["main"].params]
    return lambda: vm["main"](*inputs)


def main():
    out = os.fdopen(os.dup(1), "w")   # what libraries print goes to the log
    os.dup2(2, 1)
    run = {"hone": hone, "onnxruntime": onnxruntime, "openvino": openvino, "openvino-bf16": lambda: openvino("bf16"), "torch": torch,
           "torch-bf16": lambda: torch("bfloat16"), "torch-int8": torch_int8, "openblas": openblas, "tvm": tvm}[kind]()
    run()
    print("ready", file=out, flush=True)
    for _ in sys.stdin:
        times, end = [], time.perf_counter() + seconds
        run()
        while len(times) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        print(sorted(times)[len(times) // 2] * 1e3, file=out, flush=True)


main()
