# SPDX-License-Identifier: Apache-2.0
"""python -m streamgemm.selftest [DEVICE...]: tests this installation. Needs only the package; NumPy,
if installed, is tested too. Without arguments: the cpu, a simulated GPU, and every real one."""

import array
import asyncio
import gc
import random
import sys

import streamgemm as sg


def matrix(rows, cols, code="f", values=None):
    """A memoryview of rows x cols; small integers, so that every product is exact in every type."""
    values = [random.randint(-4, 4) for _ in range(rows * cols)] if values is None else values
    return memoryview(array.array(code, values)).cast("B").cast(code, (rows, cols))


def matmul(a, b):
    """The reference of a @ b."""
    return [[sum(a[i, p] * b[p, j] for p in range(a.shape[1])) for j in range(b.shape[1])] for i in range(a.shape[0])]


def transposed(a):
    return sg.Matrix(a).T


def gemms(context):
    for code in "fd":
        for m, n, k in ((1, 1, 1), (5, 3, 7), (33, 17, 65)):
            a, b, c = matrix(m, k, code), matrix(k, n, code), matrix(m, n, code)
            before = c.tolist()
            context.gemm(a, b, c, alpha=2.0, beta=-1.0)
            wanted = matmul(a, b)
            assert c.tolist() == [[2 * w - p for w, p in zip(*rows)] for rows in zip(wanted, before)]
            context.gemm(transposed(a), b, c, op_a="T")
            assert c.tolist() == wanted


def futures(context):
    a, b = matrix(24, 24), matrix(24, 24)
    wanted = matmul(a, b)
    results = [matrix(24, 24) for _ in range(100)]
    for job in [context.gemm_async(a, b, c) for c in results]:
        job.result(60)
    assert all(c.tolist() == wanted for c in results)

    async def gathered():
        return await asyncio.gather(*(context.gemm_async(a, b, c) for c in results))

    for c in results:
        context.gemm(a, b, c, alpha=0.0)
    assert asyncio.run(gathered()) == results and all(c.tolist() == wanted for c in results)


def dropped_operands(context):
    c = matrix(40, 40)
    for _ in range(50):
        a, b = matrix(40, 40), matrix(40, 40)
        wanted = matmul(a, b) if _ == 49 else None
        job = context.gemm_async(a, b, c)
        del a, b
        gc.collect()
    job.result(60)
    assert c.tolist() == wanted


def errors(context):
    a = matrix(4, 4)
    for wrong in (
        lambda: context.gemm(a, matrix(3, 4), matrix(4, 4)),
        lambda: context.gemm(a, a, a),
        lambda: context.gemm(a, a, a.toreadonly()),
        lambda: context.gemm(a, matrix(4, 4, "d"), matrix(4, 4)),
    ):
        try:
            wrong()
        except sg.InvalidArgument:
            continue
        raise AssertionError("a wrong argument was taken")
    try:
        sg.Context("no-such-device")
    except sg.NoDevice:
        return
    raise AssertionError("a device that is not there was opened")


def device_memory(context):
    a, b, c = matrix(9, 6), matrix(6, 8), matrix(9, 8)
    on_device = []
    for host in (a, b, c):
        with context.buffer(host.nbytes) as buffer:
            on_device.append(buffer.matrix(host.shape))
    context.copy(on_device[0], a)
    context.copy(on_device[1], b)
    job = context.gemm_async(*on_device)
    context.copy_async(c, on_device[2], after=[job]).result(60)
    assert c.tolist() == matmul(a, b)


def plans(context):
    here = [sg.Matrix.placeholder((512, 512), place="pinned") for _ in range(2)]
    with context.plan(*here) as plan:
        assert plan.prediction.predicted_seconds > 0 and plan.commands and plan.timeline
    a, b, c = matrix(16, 16), matrix(16, 16), matrix(16, 16)
    with context.plan(a, b, c) as plan:
        plan.run(a, b, c)
    assert c.tolist() == matmul(a, b)


def numpy_arrays(context):
    try:
        import numpy as np
    except ImportError:
        return "NumPy is not here"
    values = np.random.default_rng(1)
    for dtype in (np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8):
        a, b = (values.integers(-4, 5, shape).astype(dtype) for shape in ((3, 20, 30), (3, 30, 10)))
        wide = np.int32 if dtype is np.int8 else dtype
        assert (context.matmul(a, b) == a.astype(wide) @ b.astype(wide)).all(), dtype
    return None


CHECKS = (gemms, futures, dropped_operands, errors, device_memory, plans, numpy_arrays)


def main(names):
    print(f"streamgemm {sg.__version__}, Python {sys.version.split()[0]}")
    for backend in sg.backends():
        print(f"backend {backend.name}: {'usable' if backend.available else backend.reason}{f' ({backend.origin})' if backend.origin else ''}")
    names = names or ["cpu", "sim:h200"] + [d.name for d in sg.devices() if d.name.startswith("cuda")]
    failed = 0
    for name in names:
        with sg.Context(name) as context:
            for check in CHECKS:
                try:
                    note = check(context)
                    print(f"{name:10} {check.__name__:18} {'ok' if note is None else note}")
                except Exception as failure:
                    failed += 1
                    print(f"{name:10} {check.__name__:18} FAILED: {type(failure).__name__}: {failure}")
    print("passed" if not failed else f"{failed} checks failed")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
