"""The Python package as a user has it: models compiled by the real `hone`, run from an installed wheel, against ONNX
Runtime and NumPy; tensors by NumPy, by DLPack and, where it is installed, from PyTorch."""
import gc
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import hone
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from compare import difference

PROGRAMS, EXAMPLES = os.environ["HONE_PROGRAMS"], os.environ["HONE_EXAMPLES"]
try:
    import torch
except ImportError:
    torch = None
RNG = np.random.default_rng(1)


def aligned(array):
    """A copy of `array` that starts at a multiple of 64 bytes."""
    memory = np.empty(array.nbytes + 64, dtype=np.uint8)
    at = -memory.ctypes.data % 64
    result = memory[at:at + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def unaligned(array):
    """A contiguous copy that does not start at one."""
    memory = np.empty(array.nbytes + 128, dtype=np.uint8)
    at = -memory.ctypes.data % 64 + 16
    result = memory[at:at + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


class DlpackOnly:
    """What a library that is not NumPy hands over: DLPack, and nothing else."""

    def __init__(self, array):
        self._array = array
        self.asked = 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def float_info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(folder, name, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializer=list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    return path


def compile_model(path, *options):
    bundle = os.path.splitext(path)[0] + ".hone"
    subprocess.run([f"{PROGRAMS}/hone", "compile", path, "-o", bundle, "--untuned", *options],
                   check=True, stderr=subprocess.DEVNULL)
    return bundle


def make_network(folder):
    """y = relu(x W1 + b1) W2 for 8 rows of 48."""
    w1, b1, w2 = (RNG.uniform(-1, 1, shape).astype(np.float32) for shape in ((48, 64), (64,), (64, 40)))
    return save(folder, "network",
                [helper.make_node("MatMul", ["x", "w1"], ["m"]), helper.make_node("Add", ["m", "b1"], ["a"]),
                 helper.make_node("Relu", ["a"], ["r"]), helper.make_node("MatMul", ["r", "w2"], ["y"])],
                [float_info("x", [8, 48])], [float_info("y", [8, 40])],
                [onnx.numpy_helper.from_array(v, n) for v, n in ((w1, "w1"), (b1, "b1"), (w2, "w2"))])


def make_open(folder):
    """y = x W for any number of rows, and the sum of x with as many other rows."""
    w = RNG.uniform(-1, 1, (48, 40)).astype(np.float32)
    return save(folder, "open",
                [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Add", ["x", "more"], ["sum"])],
                [float_info("x", ["rows", 48]), float_info("more", ["rows", 48])],
                [float_info("y", ["rows", 40]), float_info("sum", ["rows", 48])], [onnx.numpy_helper.from_array(w, "w")])


def make_types(folder):
    """Several inputs, several outputs, several types."""
    return save(folder, "types",
                [helper.make_node("Gather", ["table", "index"], ["rows"]), helper.make_node("Mul", ["rows", "scale"], ["scaled"]),
                 helper.make_node("Greater", ["scaled", "rows"], ["larger"])],
                [float_info("table", [20, 6]), float_info("index", [5], TensorProto.INT64), float_info("scale", [6])],
                [float_info("scaled", [5, 6]), float_info("larger", [5, 6], TensorProto.BOOL)])


def make_calls(folder, dtype="float32"):
    """y = relu(env.scale(relu(x))), where env.scale is a function of the program that runs the model, on that type."""
    path = os.path.join(folder, f"calls_{dtype}.py")
    with open(path, "w") as file:
        file.write(f'''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 48), dtype="float32")) -> R.Tensor((8, 48), dtype="float32"):
        with R.dataflow():
            lv = R.nn.relu(x)
            lv1 = R.astype(lv, dtype="{dtype}")
            lv2 = R.call_dps_packed("env.scale", (lv1,), out_sinfo=R.Tensor((8, 48), dtype="{dtype}"))
            lv3 = R.astype(lv2, dtype="float32")
            gv = R.nn.relu(lv3)
            R.output(gv)
        return gv
''')
    return path


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.onnx = make_network(cls.folder.name)
        cls.bundle = compile_model(cls.onnx, "--threads", "2")
        cls.types_onnx = make_types(cls.folder.name)
        cls.types = compile_model(cls.types_onnx)
        cls.session = onnxruntime.InferenceSession(cls.onnx, providers=["CPUExecutionProvider"])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def x(self):
        return RNG.uniform(-1, 1, (8, 48)).astype(np.float32)

    def expected(self, x):
        return self.session.run(["y"], {"x": x})[0]

    def assertAgrees(self, got, want):
        self.assertFalse(difference(np.asarray(got), want, 1e-4, 1e-5))

    # ---- what a model says of itself

    def test_describes_itself(self):
        model = hone.load(self.bundle)
        self.assertEqual(model.inputs, {"x": hone.TensorInfo("x", "float32", (8, 48))})
        self.assertEqual(model.outputs["y"].shape, (8, 40))
        self.assertEqual(model.manifest["model"], "network")
        self.assertIn("x: float32[8, 48]", repr(model))
        self.assertEqual(hone.load(self.bundle, threads=1).threads, 1)
        self.assertEqual(hone.load(self.bundle, threads=2).threads, 2)
        self.assertEqual(hone.__version__.count("."), 2)

    def test_takes_any_size_of_an_open_dimension(self):
        path = make_open(self.folder.name)
        model = hone.load(compile_model(path, "--dim", "rows=1..20"))
        self.assertEqual(model.inputs["x"], hone.TensorInfo("x", "float32", (20, 48), ("rows", "")))
        self.assertIn("x: float32[rows, 48]", repr(model))
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for rows in (20, 1, 7, 16, 17):
            x, more = (RNG.uniform(-1, 1, (rows, 48)).astype(np.float32) for _ in range(2))
            got = model(x=x, more=more)
            for name, want in zip(("y", "sum"), session.run(["y", "sum"], {"x": x, "more": more})):
                self.assertEqual(got[name].shape, want.shape)
                self.assertAgrees(got[name], want)
            y = aligned(np.zeros((rows, 40), dtype=np.float32))
            model.run({"x": x, "more": more}, out={"y": y})
            self.assertAgrees(y, got["y"])
        with self.assertRaisesRegex(hone.InvalidArgument, r"\(rows, 48\) with rows from 1 to 20, the tensor \(21, 48\)"):
            model(x=np.zeros((21, 48), np.float32), more=np.zeros((21, 48), np.float32))
        with self.assertRaisesRegex(hone.InvalidArgument, "input `more` has shape"):
            model(x=np.zeros((3, 48), np.float32), more=np.zeros((4, 48), np.float32))
        with self.assertRaisesRegex(hone.InvalidArgument, "the tensor \\(4, 40\\)"):
            model.run({"x": x[:3], "more": more[:3]}, out={"y": aligned(np.zeros((4, 40), np.float32))})

    def test_loads_from_bytes(self):
        with open(self.bundle, "rb") as file:
            model = hone.load(file.read())
        x = self.x()
        self.assertAgrees(model(x=x), self.expected(x))

    # ---- running

    def test_agrees_with_onnx_runtime(self):
        model = hone.load(self.bundle)
        for _ in range(3):
            x = self.x()
            y = model(x=x)
            self.assertIsInstance(y, np.ndarray)
            self.assertAgrees(y, self.expected(x))
            self.assertAgrees(model(x), self.expected(x))                   # by place
            self.assertAgrees(model.run({"x": x})["y"], self.expected(x))

    def test_several_tensors_and_types(self):
        model = hone.load(self.types)
        table, scale = RNG.uniform(-1, 1, (20, 6)).astype(np.float32), RNG.uniform(-2, 2, 6).astype(np.float32)
        index = np.array([3, 0, 19, 7, 3], dtype=np.int64)
        got = model(table=table, index=index, scale=scale)
        session = onnxruntime.InferenceSession(self.types_onnx, providers=["CPUExecutionProvider"])
        scaled, larger = session.run(["scaled", "larger"], {"table": table, "index": index, "scale": scale})
        self.assertEqual(list(got), ["scaled", "larger"])
        self.assertAgrees(got["scaled"], scaled)
        self.assertEqual(got["larger"].dtype, np.bool_)
        np.testing.assert_array_equal(got["larger"], larger)
        by_place = model(table, index, scale=scale)
        np.testing.assert_array_equal(by_place["scaled"], got["scaled"])

    def test_a_real_network(self):
        models = os.environ.get("HONE_MODELS")
        if models is None:
            self.skipTest("HONE_MODELS is not set; tests/run sets it")
        path = os.path.join(self.folder.name, "mlp.onnx")
        os.symlink(os.path.join(models, "mlp.onnx"), path)
        if os.path.exists(os.path.join(models, "mlp.onnx.data")):
            os.symlink(os.path.join(models, "mlp.onnx.data"), path + ".data")
        model = hone.load(compile_model(path))
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        inputs = {i.name: RNG.uniform(-1, 1, i.shape).astype(np.float32) for i in model.inputs.values()}
        for name, want in zip(model.outputs, session.run(list(model.outputs), inputs)):
            self.assertFalse(difference(model.run(inputs)[name], want, 1e-3, 1e-4))

    # ---- without a copy

    def test_aligned_memory_is_read_where_it_lies(self):
        model = hone.load(self.bundle)
        x = aligned(self.x())
        address = x.ctypes.data
        for given in (x, DlpackOnly(x)):
            self.assertEqual(model._session.places({"x": given}), {"x": address})
        other = unaligned(x)
        self.assertNotEqual(model._session.places({"x": other}), {"x": other.ctypes.data})
        self.assertEqual(model.empty("x").ctypes.data % 64, 0)
        kept = x.copy()
        self.assertAgrees(model(x=x), self.expected(kept))
        np.testing.assert_array_equal(x, kept)                               # only read

    def test_any_strides_and_alignments(self):
        model = hone.load(self.bundle)
        x = self.x()
        want = self.expected(x)
        wide = np.zeros((8, 96), dtype=np.float32)
        wide[:, ::2] = x
        read_only = x.copy()
        read_only.flags.writeable = False
        for given in (unaligned(x), aligned(x), np.asfortranarray(x), wide[:, ::2], x[::-1].copy()[::-1], read_only,
                      DlpackOnly(x), DlpackOnly(wide[:, ::2])):
            self.assertAgrees(model(x=given), want)

    def test_results_are_the_callers_own(self):
        model = hone.load(self.bundle)
        a, b = self.x(), self.x()
        first = model(x=a)
        kept = first.copy()
        second = model(x=b)
        np.testing.assert_array_equal(first, kept)                           # a later run does not touch it
        self.assertFalse(np.shares_memory(first, second))
        first[...] = 0                                                       # writable
        del model
        self.assertAgrees(second, self.expected(b))                          # outlives the model

    def test_results_go_on_by_dlpack(self):
        x = self.x()
        y = hone.load(self.bundle)(x=x)
        taken = np.from_dlpack(DlpackOnly(y))
        self.assertEqual(taken.ctypes.data, y.ctypes.data)
        self.assertAgrees(taken, self.expected(x))

    def test_writes_into_given_memory(self):
        model = hone.load(self.bundle)
        x, y = self.x(), model.empty("y")
        result = model.run({"x": x}, out={"y": y})
        self.assertIs(result["y"], y)
        self.assertAgrees(y, self.expected(x))
        with self.assertRaisesRegex(hone.InvalidArgument, "64-byte aligned"):
            model.run({"x": x}, out={"y": unaligned(y)})
        with self.assertRaisesRegex(hone.InvalidArgument, "no output `z`"):
            model.run({"x": x}, out={"z": y})

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_pytorch_tensors(self):
        model = hone.load(self.bundle)
        x = torch.rand(8, 48)
        self.assertEqual(model._session.places({"x": x}), {"x": x.data_ptr()})
        y = torch.from_dlpack(model(x=x))
        self.assertAgrees(y.numpy(), self.expected(x.numpy()))
        self.assertAgrees(model(x=torch.rand(48, 8).t()).shape, np.array((8, 40)))
        self.assertAgrees(model(x=x[:, :]), self.expected(x.numpy()))

    # ---- mistakes

    def test_mistakes_are_exceptions(self):
        model = hone.load(self.bundle)
        cases = [
            (lambda: hone.load("/no/such/file.hone"), hone.NotFound, "/no/such/file.hone"),
            (lambda: hone.load(self.onnx), hone.Corrupt, "network.onnx"),
            (lambda: hone.load(b"nonsense"), hone.Corrupt, ""),
            (lambda: hone.load(self.bundle, threads=-1), hone.InvalidArgument, "threads is -1"),
            (lambda: model(), hone.InvalidArgument, "input `x` is not given"),
            (lambda: model(z=self.x()), hone.InvalidArgument, "`x`"),
            (lambda: model(x=self.x(), z=1), hone.InvalidArgument, "no input `z`; it has `x`"),
            (lambda: model(self.x(), x=self.x()), hone.InvalidArgument, "given twice"),
            (lambda: model(self.x(), self.x()), hone.InvalidArgument, "2 inputs are given"),
            (lambda: model(x="text"), hone.InvalidArgument, "a str is not a tensor"),
            (lambda: model(x=self.x().astype(np.float64)), hone.InvalidArgument, r"float32 \(8, 48\), given was float64 \(8, 48\)"),
            (lambda: model(x=self.x()[:4]), hone.InvalidArgument, r"given was float32 \(4, 48\)"),
            (lambda: model.empty("z"), hone.InvalidArgument, "no input or output `z`"),
            (lambda: model.profile(x=self.x(), runs=0), hone.InvalidArgument, "runs is 0"),
        ]
        for act, kind, says in cases:
            with self.assertRaisesRegex(kind, says):
                act()
            with self.assertRaises(hone.Error):
                act()
        with self.assertRaises(FileNotFoundError):
            hone.load("/no/such/file.hone")
        with self.assertRaises(ValueError):
            model(x=self.x()[:4])
        x = self.x()
        self.assertAgrees(model(x=x), self.expected(x))                      # none of it harmed the model

    def test_a_damaged_bundle(self):
        with open(self.bundle, "rb") as file:
            whole = file.read()
        path = os.path.join(self.folder.name, "damaged.hone")
        for size in (0, 100, len(whole) // 2, len(whole) - 1):
            with open(path, "wb") as file:
                file.write(whole[:size])
            with self.assertRaises(hone.Corrupt):
                hone.load(path)

    # ---- functions of the program's

    def test_functions_of_the_program(self):
        bundle = compile_model(make_calls(self.folder.name))
        factor, wrong = 3.0, []

        def scale(x, y):
            for array, writable in ((x, False), (y, True)):
                if (type(array), array.shape, array.dtype, array.flags.writeable) != (np.ndarray, (8, 48), np.float32, writable):
                    wrong.append(array)
            np.multiply(x, factor, out=y)

        model = hone.load(bundle, functions={"env.scale": scale, "env.other": np.multiply})
        self.assertEqual(model.manifest["functions"], ["env.scale"])
        for each in (model, model.clone()):
            for factor in (3.0, 0.5):
                x = self.x()
                self.assertAgrees(each(x), np.maximum(x, 0) * np.float32(factor))
        self.assertEqual(wrong, [])
        self.assertIn(("env.scale", ""), [(step.name, step.symbol) for step in model.profile(self.x())])

        with self.assertRaisesRegex(hone.InvalidArgument, "`env.scale`; name them in .*functions="):
            hone.load(bundle)

        def refuse(x, y):
            raise RuntimeError("é" * 600)                                   # cut at a byte that is within a character

        with self.assertRaisesRegex(hone.KernelFailed, "step 1, function `env.scale`: RuntimeError: ééé"):
            hone.load(bundle, functions={"env.scale": refuse})(self.x())
        with self.assertRaisesRegex(hone.KernelFailed, "`env.scale`: TypeError"):
            hone.load(bundle, functions={"env.scale": lambda x: None})(self.x())

    def test_a_function_on_bfloat16(self):
        """NumPy lacks the type: a function has what others take over by DLPack."""
        seen = []
        bundle = compile_model(make_calls(self.folder.name, "bfloat16"))
        hone.load(bundle, functions={"env.scale": lambda *arrays: seen.extend(arrays)})(self.x())
        self.assertEqual([array.__dlpack_device__() for array in seen], [(1, 0)] * 2)

    def test_a_function_that_refers_to_its_model_is_collected(self):
        class Program:
            def __init__(self, bundle):
                self.model = hone.load(bundle, functions={"env.scale": self.scale})

            def scale(self, x, y):
                y[...] = x

        program = Program(compile_model(make_calls(self.folder.name)))
        program.model(self.x())
        model = weakref.ref(program.model)
        del program
        gc.collect()
        self.assertIsNone(model())

    # ---- threads and times

    def wrong_of(self, models):
        """Which of the models give wrong answers when each is called by a thread of its own."""
        wrong = []

        def work(model, seed):
            rng = np.random.default_rng(seed)
            for _ in range(50):
                x = rng.uniform(-1, 1, (8, 48)).astype(np.float32)
                if difference(model(x=x), self.expected(x), 1e-4, 1e-5):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(model, i)) for i, model in enumerate(models)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return wrong

    def test_python_threads(self):
        """Four threads on one model and four on clones: everybody gets the answer to their own question."""
        shared = hone.load(self.bundle, threads=1)
        self.assertEqual(self.wrong_of([shared if i < 4 else shared.clone() for i in range(8)]), [])

    def test_a_pool_that_models_share(self):
        pool = hone.ThreadPool(threads=3)
        models = [hone.load(self.bundle, pool=pool), hone.load(self.bundle, pool=pool)]
        models.append(models[0].clone())
        del pool                                                             # they hold it
        self.assertEqual([model.threads for model in models], [3, 3, 3])
        self.assertEqual(self.wrong_of(models), [])
        with self.assertRaisesRegex(hone.InvalidArgument, "given a pool of 2 threads"):
            hone.load(self.bundle, threads=2, pool=hone.ThreadPool(2))
        with self.assertRaises(hone.InvalidArgument):
            hone.ThreadPool(-1)

    def test_profile(self):
        model = hone.load(self.bundle)
        steps = model.profile(x=self.x(), runs=5)
        self.assertGreaterEqual(len(steps), 2)
        self.assertEqual({step.name for step in steps}, {kernel["name"] for kernel in model.manifest["kernels"]})
        for step in steps:
            self.assertGreater(step.us, 0)
            self.assertEqual(step.record, "")                                # untuned
        self.assertEqual([step.name for step in model.profile(self.x())], [step.name for step in steps])

    def test_the_example(self):
        example = subprocess.run([sys.executable, f"{EXAMPLES}/run_bundle.py", self.bundle], capture_output=True, text=True)
        self.assertEqual(example.returncode, 0, example.stderr)
        self.assertIn("y: float32 (8, 40)", example.stdout)
        self.assertIn(" us ", example.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
