#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drawn triangular solves and products, symmetric products and updates of rank k and 2k, from pinned, pageable and device memory, beside
cuBLAS: of operands in host memory between one copy in and one copy out of each.

usage: triangles.py [--draw N] [--seed N] [--large N] [--json FILE] [--commit COMMIT]    --large: f64 of this order instead, in every memory
"""
import ctypes
import math
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "networks"))
import record as common
import streamgemm as sg
import torch

KINDS = ("solve", "multiply", "symmetric", "rank k", "rank 2k")
MEMORIES = ("device", "pinned", "pageable")
TYPES = {"f64": (torch.float64, "D", ctypes.c_double), "f32": (torch.float32, "S", ctypes.c_float)}
LEFT, RIGHT, LOWER, UPPER, NO, TRANSPOSED, NON_UNIT = 0, 1, 0, 1, 0, 1, 0  # cublas_api.h


class Cublas:
    """Calls on the current stream. Memory read as column major is the transpose: sides and triangles are the other ones."""

    def __init__(self):
        self._library = ctypes.CDLL("libcublas.so.13")
        self._handle = ctypes.c_void_p()
        self._checked(self._library.cublasCreate_v2(ctypes.byref(self._handle)))

    @staticmethod
    def _checked(status):
        if status != 0:
            raise RuntimeError(f"cuBLAS says {status}")

    def run(self, kind, dtype, left, lower, a, b, c):
        _, letter, scalar = TYPES[dtype]
        one, zero = ctypes.byref(scalar(1)), ctypes.byref(scalar(0))
        side, triangle = (RIGHT if left else LEFT), (UPPER if lower else LOWER)
        of = [(ctypes.c_void_p(x.data_ptr()), x.shape[1]) if x is not None else () for x in (a, b, c)]
        name, given = {
            "solve": lambda: ("trsm", (side, triangle, NO, NON_UNIT, b.shape[1], b.shape[0], one, *of[0], *of[1])),
            "multiply": lambda: ("trmm", (side, triangle, NO, NON_UNIT, b.shape[1], b.shape[0], one, *of[0], *of[1], *of[1])),
            "symmetric": lambda: ("symm", (side, triangle, c.shape[1], c.shape[0], one, *of[0], *of[1], zero, *of[2])),
            "rank k": lambda: ("syrk", (triangle, TRANSPOSED, c.shape[0], a.shape[1], one, *of[0], zero, *of[2])),
            "rank 2k": lambda: ("syr2k", (triangle, TRANSPOSED, c.shape[0], a.shape[1], one, *of[0], *of[1], zero, *of[2])),
        }[kind]()
        self._checked(getattr(self._library, f"cublas{letter}{name}_v2")(self._handle, *given))


class Case:
    def __init__(self, kind, dtype, m, n, left, lower, memory):
        self.kind, self.dtype, self.left, self.lower, self.memory = kind, dtype, left, lower, memory
        self.name = f"{kind} {dtype} {m}x{n}" + ("" if kind.startswith("rank") else " left" if left else " right") + f" {memory}"
        order = m if left else n
        scale = 1e-3 / order
        if kind in ("solve", "multiply"):  # near the identity, so that many runs change B little
            shapes = {"a": (order, order), "b": (m, n)}
        elif kind == "symmetric":
            shapes = {"a": (order, order), "b": (m, n), "c": (m, n)}
        else:
            shapes = {"a": (m, n), "c": (m, m)} | ({"b": (m, n)} if kind == "rank 2k" else {})
        self.flops = {"solve": m * n * order, "multiply": m * n * order, "symmetric": 2 * m * n * order, "rank k": m * m * n,
                      "rank 2k": 2 * m * m * n}[kind]
        self.host = {name: torch.rand(shape, dtype=TYPES[dtype][0], device="cuda").cpu() for name, shape in shapes.items()}
        if kind in ("solve", "multiply"):
            self.host["a"] = self.host["a"] * scale + torch.eye(order, dtype=TYPES[dtype][0])
        if memory == "pinned":
            self.host = {name: x.pin_memory() for name, x in self.host.items()}
        self.device = {name: x.cuda() for name, x in self.host.items()}
        self.result = "b" if kind in ("solve", "multiply") else "c"

    def ours(self, context, at):
        a, b, c = (sg.Matrix(at[name]) if name in at else None for name in "abc")
        triangle = "lower" if self.lower else "upper"
        if self.kind in ("solve", "multiply"):
            return lambda: context.triangular_async(a, b, kind=self.kind, side="left" if self.left else "right", triangle=triangle)
        if self.kind == "symmetric":
            return lambda: context.symmetric_async(a, b, c, side="left" if self.left else "right", triangle=triangle)
        return lambda: context.rank_k_async(a, c, b=b, triangle=triangle)

    def cublas(self, library):
        a, b, c = (self.device.get(name) for name in "abc")

        def run():
            if self.memory != "device":
                for name, x in self.host.items():
                    if name != "c":
                        self.device[name].copy_(x, non_blocking=True)
            library.run(self.kind, self.dtype, self.left, self.lower, a, b, c)
            if self.memory != "device":
                self.host[self.result].copy_(self.device[self.result], non_blocking=True)

        return run

    def is_same(self, context, library):
        """One run of each of the same operands."""
        before = {name: x.clone() for name, x in self.device.items()}
        at = before if self.memory == "device" else {name: x.cpu() for name, x in before.items()}
        torch.cuda.synchronize()
        self.ours(context, at)().result()
        library.run(self.kind, self.dtype, self.left, self.lower, *(self.device.get(name) for name in "abc"))
        torch.cuda.synchronize()
        found, known = at[self.result].cuda(), self.device[self.result]
        if self.kind.startswith("rank"):
            found, known = ((x.tril() if self.lower else x.triu()) for x in (found, known))
        return common.difference(found, known) < (1e-11 if self.dtype == "f64" else 1e-4)


def drawn(random_, number):
    for _ in range(number):
        sizes = [int(2 ** random_.uniform(6, 13)) for _ in range(2)]
        yield Case(random_.choice(KINDS), random_.choice(list(TYPES)), *sizes, random_.random() < 0.5, random_.random() < 0.5,
                   random_.choice(MEMORIES))


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--draw", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--large", type=int)
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    torch.manual_seed(seed)
    context, library = sg.Context("cuda:0"), Cublas()
    kept = common.Record("triangles", context, options.commit)
    kept.note(seed=seed)
    if options.large:
        cases = (Case(kind, "f64", options.large, options.large, True, True, memory) for kind in KINDS for memory in MEMORIES)
    else:
        cases = drawn(random.Random(seed), options.draw)
    ratios, wrong = {}, []
    for case in cases:
        if not case.is_same(context, library):
            wrong.append(case.name)
        at = case.device if case.memory == "device" else case.host
        medians = kept.measure(case.name, {"streamgemm": case.ours(context, at), "cuBLAS": case.cublas(library)}, options.rounds,
                               flops=case.flops)
        ratios.setdefault(case.memory, []).append((medians["streamgemm"] / medians["cuBLAS"], case.name))
    kept.write(options.json)
    for memory, of in ratios.items():
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in of))
        print(f"{memory}: {len(of)} cases, streamgemm over cuBLAS {mean:.3f}, worst {max(of)}")
    print(f"seed {seed}; wrong: {wrong}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
