# SPDX-License-Identifier: Apache-2.0
"""Exporters with arbitrary descriptions, of the buffer protocol and of DLPack, by ctypes."""

import ctypes

api = ctypes.pythonapi
SSIZE = ctypes.c_ssize_t


class PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", SSIZE),
        ("itemsize", SSIZE),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(SSIZE)),
        ("strides", ctypes.POINTER(SSIZE)),
        ("suboffsets", ctypes.POINTER(SSIZE)),
        ("internal", ctypes.c_void_p),
    ]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int)
_kept = []


def values(items):
    """An array of Py_ssize_t; None: NULL."""
    return None if items is None else (SSIZE * max(1, len(items)))(*items)


class BufferSays:
    """The claimed description of a buffer; the real memory is `memory`."""

    def __init__(self, memory, ndim, shape, strides, *, itemsize=4, fmt=b"f", readonly=0, suboffsets=None, null=False):
        self.memory, self.ndim, self.itemsize, self.format, self.readonly = memory, ndim, itemsize, fmt, readonly
        self.shape, self.strides, self.suboffsets = values(shape), values(strides), values(suboffsets)
        self.address = 0 if null else ctypes.addressof(memory)
        self.taken = 0
        self.exporter = self._made()

    def _made(self):
        def fill(owner, buffer, flags):
            b = buffer.contents
            b.buf, b.len, b.itemsize, b.ndim = self.address, ctypes.sizeof(self.memory), self.itemsize, self.ndim
            b.format, b.readonly, b.internal = self.format, self.readonly, None
            for name in ("shape", "strides", "suboffsets"):
                given = getattr(self, name)
                setattr(b, name, ctypes.cast(given, ctypes.POINTER(SSIZE)) if given is not None else None)
            b.obj = id(owner)
            api.Py_IncRef(ctypes.py_object(owner))
            self.taken += 1
            return 0

        call = _GET(fill)
        slots = (_Slot * 2)(_Slot(1, ctypes.cast(call, ctypes.c_void_p)), _Slot(0, None))
        spec = _Spec(b"hostile.Exporter", object.__basicsize__, 0, 1 << 10, slots)
        _kept.append((call, slots, spec))
        make = api.PyType_FromSpec
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
        return make(ctypes.addressof(spec))()


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("release", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class TensorSays:
    """An exporter of DLPack; __dlpack_device__ returns `device`."""

    def __init__(
        self, memory, shape, strides=None, *, ndim=None, code=2, bits=32, lanes=1, offset=0, device=(1, 0), null=False,
        version=None, flags=0,
    ):  # fmt: skip
        array = lambda v: None if v is None else (ctypes.c_int64 * max(1, len(v)))(*v)  # noqa: E731
        self.device, self.kept = device, (memory, array(shape), array(strides))
        tensor = Tensor(
            0 if null else ctypes.addressof(memory),
            *device,
            len(shape) if ndim is None else ndim,
            code,
            bits,
            lanes,
            *(ctypes.cast(x, ctypes.POINTER(ctypes.c_int64)) if x is not None else None for x in self.kept[1:]),
            offset,
        )
        self.name = b"dltensor" if version is None else b"dltensor_versioned"
        self.managed = (
            _Managed(tensor, None, None) if version is None else _Versioned(version, 0, None, None, flags, tensor)
        )

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **how):
        make = api.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), self.name, None)
