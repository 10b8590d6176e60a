"""A bundle run through the runtime's C interface, without the Python package, which would have to be built into every
environment."""
import ctypes as c

import numpy as np


class _Type(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class _Tensor(c.Structure):   # DLTensor
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("dtype", _Type),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class _Info(c.Structure):   # HoneTensorInfo
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("dtype", _Type), ("dtype_name", c.c_char_p), ("ndim", c.c_int32),
                ("shape", c.POINTER(c.c_int64)), ("bytes", c.c_int64), ("least_shape", c.POINTER(c.c_int64)),
                ("size_names", c.POINTER(c.c_char_p))]


class _Options(c.Structure):   # HoneInstanceOptions
    _fields_ = [("struct_size", c.c_size_t), ("threads", c.c_int32), ("pin_threads", c.c_int32)]


class Bundle:
    def __init__(self, library, path, threads, values, sizes=None):
        """`values(shape, dtype)` makes each input. `sizes`: of dimensions that the bundle leaves open, by name; the greatest
        otherwise."""
        sizes = sizes or {}
        self._lib = c.CDLL(library)
        self._lib.hone_last_error.restype = c.c_char_p
        self._module, self._instance = c.c_void_p(), c.c_void_p()
        self._check(self._lib.hone_module_load(path.encode(), c.byref(self._module)))
        options = _Options(c.sizeof(_Options), threads, 1)
        self._check(self._lib.hone_instance_create(self._module, c.byref(options), c.byref(self._instance)))
        for i in range(self._lib.hone_module_num_inputs(self._module)):
            info = _Info(struct_size=c.sizeof(_Info))
            self._check(self._lib.hone_module_input(self._module, i, c.byref(info)))
            shape = [sizes.get(info.size_names[d].decode(), info.shape[d]) for d in range(info.ndim)]
            array = np.ascontiguousarray(values(shape, info.dtype_name.decode()))
            tensor = _Tensor(array.ctypes.data, 1, 0, info.ndim, info.dtype, (c.c_int64 * info.ndim)(*shape), None, 0)
            self._check(self._lib.hone_instance_set_input(self._instance, info.name, c.byref(tensor)))
        self._run = self._lib.hone_instance_run

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self._lib.hone_last_error().decode())

    def run(self):
        self._check(self._run(self._instance))
