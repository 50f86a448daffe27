# SPDX-License-Identifier: Apache-2.0
"""Random GEMMs for random_test.py: shapes, strides, types and exporters; a case is a value that prints as itself."""

import array
import ctypes
import dataclasses

import numpy as np
import streamgemm as sg
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

DTYPES = ("f2", "f4", "f8", "c8", "c16", "i1")
RESULT = {"f2": ("f2", "f4"), "i1": ("i4",)}
EXPORTERS = ("numpy", "numpy", "memoryview", "ctypes", "array", "dlpack", "interface", "Matrix", "list")
CALLS = ("gemm", "gemm_async", "matmul", "grouped", "plan", "graph", "job")


@dataclasses.dataclass(frozen=True)
class Form:
    """The layout of an array of a given shape. The memory that it does not use is poisoned."""

    exporter: str = "numpy"
    column_major: bool = False
    pad: int = 0  # elements between one row (or column) and the next
    inner: int = 1  # the stride of the contiguous dimension: 1, or 2 and -1, which a GEMM does not take
    steps: tuple = (1, 1, 1)  # strides of the batch, in items: negative, with gaps, 0 (shared)
    swapped: bool = False  # the batch's dimensions in the other order


@dataclasses.dataclass(frozen=True)
class Case:
    """A GEMM. Values come from the seed."""

    call: str
    dtype: str
    out_dtype: str
    batch_a: tuple
    batch_b: tuple
    m: int | None  # None: a vector
    n: int | None
    k: int
    op_a: str = "N"
    op_b: str = "N"
    form_a: Form = Form()
    form_b: Form = Form()
    form_c: Form | None = None
    alpha: complex = 1.0
    beta: float = 0.0
    bias: str = ""
    relu: bool = False
    integers: bool = False
    seed: int = 0


def forms(result=False):
    steps = st.tuples(*[st.sampled_from((1, 1, -1, 2, -2) if result else (1, 1, -1, 2, 0))] * 3)
    return st.builds(
        Form,
        exporter=st.sampled_from([e for e in EXPORTERS if not result or e not in ("array", "ctypes")]),
        column_major=st.booleans(),
        pad=st.sampled_from((0, 0, 1, 3, 64)),
        inner=st.just(1) if result else st.sampled_from((1,) * 8 + (2, -1)),
        steps=steps,
        swapped=st.booleans(),
    )


@st.composite
def cases(draw):
    """A valid case; thin, empty and broadcast shapes often."""
    extents = st.sampled_from((0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 70))
    whole = draw(st.lists(st.sampled_from((0, 1, 2, 3, 2, 3)), max_size=3))
    batches = [tuple(draw(st.sampled_from((e, e, 1))) for e in whole[draw(st.integers(0, len(whole))) :]) for _ in "ab"]
    m, n, k = draw(extents), draw(extents), draw(extents)
    vector_a, vector_b = draw(st.sampled_from((False,) * 5 + (True,))), draw(st.sampled_from((False,) * 5 + (True,)))
    dtype = draw(st.sampled_from(DTYPES))
    form_c = draw(st.none() | forms(result=True))
    complex_type = dtype[0] == "c"
    integers = dtype == "i1" or draw(st.booleans())
    alphas = (1.0, 1.0, 0.0, -2.0) + (() if integers else (0.3,)) + ((0.5 - 1j,) if complex_type else ())
    return Case(
        call=draw(st.sampled_from(CALLS)),
        dtype=dtype,
        out_dtype=draw(st.sampled_from(RESULT.get(dtype, (dtype,)))) if form_c else RESULT.get(dtype, (dtype,))[0],
        batch_a=() if vector_a else batches[0],
        batch_b=() if vector_b else batches[1],
        m=None if vector_a else m,
        n=None if vector_b else n,
        k=k,
        op_a="N" if vector_a else draw(st.sampled_from("NNTC")),
        op_b="N" if vector_b else draw(st.sampled_from("NNTC")),
        form_a=draw(forms()),
        form_b=draw(forms()),
        form_c=form_c,
        alpha=draw(st.sampled_from(alphas)),
        beta=draw(st.sampled_from((0.0, 0.0, 1.0, -1.0))) if form_c else 0.0,
        bias=draw(st.sampled_from(("", "", "", "number", "column", "row", "one", "batch"))),
        relu=not complex_type and draw(st.booleans()),
        integers=integers,
        seed=draw(st.integers(0, 1 << 20)),
    )


def values(rng, shape, dtype, integers):
    """Random values, integers where the result is then exact."""
    make = (lambda: rng.integers(-3, 4, shape)) if integers else (lambda: rng.uniform(-1, 1, shape))
    return (make() + 1j * make() if np.dtype(dtype).kind == "c" else make()).astype(dtype)


def place(given, form, matrix_dims=2):
    """The values in memory of that form: (the view, all of its memory, a mask of the elements outside the view)."""
    batch = given.shape[: max(0, given.ndim - matrix_dims)]
    steps = form.steps[: len(batch)] if len(batch) <= 3 else (1,) * len(batch)
    item = list(given.shape[len(batch) :])
    turned = form.column_major and len(item) == 2
    if turned:
        item = item[::-1]
    spread = item[:-1] + [(item[-1] * abs(form.inner) + form.pad)] if item else item
    counts = [extent * max(1, abs(step)) if step else 1 for extent, step in zip(batch, steps)]
    order = list(range(len(counts)))[::-1] if form.swapped else list(range(len(counts)))
    memory = np.full([counts[i] for i in order] + spread, 77, given.dtype)
    view = memory.transpose([order.index(i) for i in range(len(counts))] + [len(counts) + i for i in range(len(item))])
    for axis, (extent, step) in enumerate(zip(batch, steps)):
        cut = [slice(None)] * view.ndim
        cut[axis] = slice(None) if step == 0 else slice(None, None, step)
        view = view[tuple(cut)]
    if item:
        view = view[..., : item[-1] * abs(form.inner)][..., :: form.inner]
    if turned:
        view = view.swapaxes(-1, -2)
    shared = [axis for axis, step in enumerate(steps) if step == 0]
    if 0 in [batch[axis] for axis in shared]:  # there are no items to share
        view = np.empty(given.shape, given.dtype)
    else:
        view[...] = given[tuple(slice(0, 1) if axis in shared else slice(None) for axis in range(given.ndim))]
    used = np.zeros(memory.shape, bool)
    if view.size and memory.size and np.shares_memory(view, memory):
        offset = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        flat = used.reshape(-1)
        as_strided(flat[offset // memory.itemsize :], view.shape, [s // memory.itemsize for s in view.strides])[...] = True
    return np.broadcast_to(view, given.shape) if view.shape != given.shape else view, memory, ~used


class _DLPack:
    def __init__(self, held):
        self.held = held

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **how):
        return self.held.__dlpack__()


class _Interface:
    def __init__(self, held):
        self.held, self.__array_interface__ = held, held.__array_interface__


def exported(view, form, may_list=True):
    """The view as another kind of object, if that kind can be it."""
    kind, code = form.exporter, view.dtype.char
    if kind == "list" and may_list and view.ndim == 3 and len(view):
        return list(view) if form.swapped else tuple(view)
    if kind == "memoryview":
        return memoryview(view)
    if kind == "ctypes" and view.dtype.kind == "f" and view.itemsize > 2 and view.size and view.flags.c_contiguous:
        made = ctypes.c_float if code == "f" else ctypes.c_double
        for extent in view.shape[::-1]:
            made = made * extent
        return made.from_buffer_copy(view)
    if kind == "array" and code in "fdb" and view.ndim == 1:
        return array.array(code, view.tolist())
    if kind == "dlpack" and view.flags.writeable and view.size:
        return _DLPack(view)
    if kind == "interface":
        return _Interface(view)
    return sg.Matrix(view) if kind == "Matrix" else view
