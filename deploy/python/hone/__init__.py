"""Runs bundles that `hone compile` made.

    import hone
    model = hone.load("resnet18.hone")
    y = model(x=array)

Tensors come as NumPy arrays or as anything with `__dlpack__` on the CPU (PyTorch's among them), in the model's own shapes
and types; where the model has symbolic sizes (`--dim batch=1..64`), every call may have others. What is contiguous and 64-byte aligned is read where it lies (what PyTorch
allocates is; `model.empty("x")` makes such NumPy arrays); anything else is copied once. Results are fresh NumPy arrays that nothing else refers to, written by the
kernels themselves; `torch.from_dlpack(y)` takes one over without a copy.

A model that calls functions of yours is given them by name: `hone.load("model.hone", functions={"env.relu": relu})`, where
`def relu(x, y): np.maximum(x, 0, out=y)` has the inputs as NumPy arrays, then those to fill in. They are the model's memory, and
of use until the function returns. What it raises is the `hone.KernelFailed` of that run.
"""
import json
import os
import statistics
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _runtime
from ._errors import (Corrupt, DeviceLost, Error, InternalError, InvalidArgument, KernelFailed, NotFound, OutOfMemory,
                      Unsupported)

__all__ = ["load", "Model", "ThreadPool", "TensorInfo", "Step", "Error", "InvalidArgument", "NotFound", "Corrupt", "Unsupported",
           "OutOfMemory", "KernelFailed", "InternalError", "DeviceLost", "__version__"]
__version__: str = _runtime.version()


class TensorInfo(NamedTuple):
    """An input or output of a model."""
    name: str
    dtype: str
    shape: Tuple[int, ...]              # where sizes are symbolic, the greatest
    size_names: Tuple[str, ...] = ()    # of each dimension: "batch", "" for a fixed one; empty where all are fixed


class Step(NamedTuple):
    """One kernel of a run, or a call of a function of yours, in the order they run."""
    name: str           # of the task or the function
    symbol: str         # of the kernel, "" for a function
    record: str         # the tuning record it was compiled from, "" when it has none
    us: float           # microseconds: the median over the profiled runs
    recorded_us: float  # what the tuner measured, 0 when it did not


class ThreadPool:
    """Threads that models share (`load(bundle, pool=...)`): calls of several models that come at once take turns, each with all
    of them. They live as long as the last model that uses them. `threads` includes the caller of a model; 0: as many as
    CPUs are allowed. With `pin_threads` each but the callers is on a CPU of its own."""

    def __init__(self, threads: int = 0, pin_threads: bool = False):
        self._pool = _runtime.ThreadPool(threads, pin_threads)


class Model:
    """A loaded bundle with memory and threads to run it. Calls from several Python threads take turns; `clone` gives each
    thread a model of its own that shares code and weights."""

    def __init__(self, module: Any, threads: int, pin_threads: bool, pool: Optional[ThreadPool] = None,
                 functions: Optional[Dict[str, Callable[..., Any]]] = None):
        self._module = module
        self._functions = dict(functions or {})     # the session does not hold them
        self._session = _runtime.session(module, threads, pin_threads, None if pool is None else pool._pool, self._functions)
        self._pin_threads = pin_threads
        self._pool = pool
        self.inputs: Dict[str, TensorInfo] = {row[0]: TensorInfo(*row) for row in module.inputs()}
        self.outputs: Dict[str, TensorInfo] = {row[0]: TensorInfo(*row) for row in module.outputs()}

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """One run. Inputs by name, or in the model's order. One output comes as itself, several as a dict."""
        results = self.run(self._named(args, inputs))
        return next(iter(results.values())) if len(results) == 1 else results

    def run(self, inputs: Dict[str, Any], out: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """One run, outputs by name. Those in `out` are written into the given arrays (contiguous, 64-byte aligned)."""
        return self._session.run(inputs, {} if out is None else out)

    def profile(self, *args: Any, runs: int = 11, **inputs: Any) -> List[Step]:
        """The time of every kernel: the median over `runs` runs. (An input called `runs` is given in the model's order.)"""
        if runs < 1:
            raise InvalidArgument(f"runs is {runs}; it must be at least 1")
        rows = self._session.profile(self._named(args, inputs), runs)
        return [Step(name, symbol, record, statistics.median(us), recorded) for name, symbol, record, us, recorded in rows]

    def empty(self, name: str) -> Any:
        """An array of zeros for that input or output, aligned so that a run uses it without a copy."""
        return self._module.empty(name)

    def clone(self) -> "Model":
        """Another model of the same bundle for another thread: memory of its own and, without a pool, threads; code and weights
        are shared."""
        return Model(self._module, self.threads if self._pool is None else 0, self._pin_threads, self._pool,
                     self._functions)

    @property
    def threads(self) -> int:
        return self._session.threads()

    @property
    def manifest(self) -> Dict[str, Any]:
        """What the bundle was made of: model, target, numeric level, and for every kernel where it came from."""
        return json.loads(self._module.manifest())

    def _named(self, args: Tuple[Any, ...], inputs: Dict[str, Any]) -> Dict[str, Any]:
        if not args:
            return inputs
        if len(args) > len(self.inputs):
            raise InvalidArgument(f"{len(args)} inputs are given, the model has {len(self.inputs)}: {', '.join(self.inputs)}")
        named = dict(zip(self.inputs, args))
        for name in inputs:
            if name in named:
                raise InvalidArgument(f"input `{name}` is given twice, by place and by name")
        return {**named, **inputs}

    def __repr__(self) -> str:
        def line(infos: Dict[str, TensorInfo]) -> str:
            def shape(info: TensorInfo) -> str:
                return ", ".join(name or str(size) for name, size in zip(info.size_names or [""] * len(info.shape), info.shape))
            return ", ".join(f"{i.name}: {i.dtype}[{shape(i)}]" for i in infos.values())
        return f"<hone.Model ({line(self.inputs)}) -> ({line(self.outputs)}), {self.threads} threads>"


def load(bundle: Union[str, "os.PathLike[str]", bytes], threads: int = 0, pin_threads: bool = False,
         pool: Optional[ThreadPool] = None, functions: Optional[Dict[str, Callable[..., Any]]] = None) -> Model:
    """Loads a bundle from a file, or from bytes. `threads` 0: as many as it was tuned for, at most the CPUs allowed. With
    `pin_threads` every thread has a CPU of its own; call the model on the thread that loaded it. With `pool` it has the
    threads of that, and the two others are left as they are. `functions`: those of yours that the model calls, by name; they
    are called on the thread that calls the model."""
    if threads < 0:
        raise InvalidArgument(f"threads is {threads}; it must be 0 (as tuned) or more")
    module = _runtime.load_bytes(bundle) if isinstance(bundle, bytes) else _runtime.load(os.fspath(bundle))
    return Model(module, threads, pin_threads, pool, functions)
