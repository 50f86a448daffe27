# SPDX-License-Identifier: Apache-2.0
"""Never run: a program that mypy --strict must accept with the package's stubs."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import numpy as np
import numpy.typing as npt
import streamgemm as sg
import streamgemm.torch as sgt
from torch import Tensor

Array = npt.NDArray[np.float32]


def blocking(a: Array, b: Array, c: Array) -> Array:
    result: Array = sg.matmul(a, b, c, compute="tf32", label="logits")
    return result


def typed_results(a: Array, b: Array, c: Array) -> Array:
    made: npt.NDArray[Any] = sg.matmul(a, b, bias=1.0, activation="relu", copy=True)
    job: sg.Job[npt.NDArray[Any]] = sg.matmul_async(a, b)
    then: sg.Job[Array] = sg.matmul_async(job, made, c, after=[job])
    name: str = then.label
    return then.result() if name else made


def on_a_device(a: Array, b: Array, c: Array) -> float:
    with sg.Context("sim:h200", memory_limit=1 << 30) as context:
        stream = context.stream(priority=1)
        first: sg.Job[Array] = context.gemm_async(a, b, c, alpha=2.0, op_a="T", stream=stream)
        second = context.gemm_async(a, b, c, after=[first], options=sg.PlanOptions(split="k", parts=2))
        done: bool = second.wait(1.5)
        result: Array = second.result() if done else first.result()
        event = context.event()
        event.record(stream)
        pinned: Array = context.pinned_empty((4, 4))
        with context.pin(a) as still_a:
            context.copy(pinned, still_a)
        with context.plan(sg.Matrix.placeholder((8, 8), place="pinned"), a) as plan:
            seconds: float = plan.prediction.predicted_seconds
        return seconds + float(result[0, 0])


def trained(context: sg.Context, w: Array, gradient: Array) -> dict[str, npt.NDArray[Any]]:
    momentum = sg.SGD(context, [w], lr=0.1, momentum=0.9)
    adam = sg.Adam(context, {"w": w}, betas=(0.9, 0.99), decoupled=True)
    step: sg.Job[list[Any]] = momentum.step([gradient], label="a step")
    pooled: Array = context.pool2d_backward(gradient, None, 2, dx=w, stride=None, pooling="average")
    adam.lr = 0.5 * momentum.lr
    adam.step({"w": context.axpby_async(gradient, gradient)}, after=[step]).result()
    adam.load_state_dict(adam.state_dict())
    return {**adam.state_dict(), "pooled": pooled}


async def awaited(a: Array, b: Array, c: Array) -> Array:
    return await sg.matmul_async(a, b, c)


def as_a_future(job: sg.Job[Array]) -> concurrent.futures.Future[Array]:
    return job


def of_torch(x: Tensor, w: Tensor, context: sg.Context) -> Tensor:
    options = sg.PlanOptions(memory_limit=1 << 30)
    hidden: Tensor = sgt.conv2d(x, w, padding="same", context=context, options=options)
    return sgt.attention(sgt.linear(hidden, w, context=context, compute="tf32"), x, x, is_causal=True, enable_gqa=True)


def fails() -> str:
    try:
        sg.Context("nowhere")
    except sg.NoDevice as failure:
        return failure.status_name
    raise AssertionError
