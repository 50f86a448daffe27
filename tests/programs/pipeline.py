# SPDX-License-Identifier: Apache-2.0
import numpy as np
import streamgemm as sg

random = np.random.default_rng(1)
layers = [random.standard_normal((256, 256), np.float32) / 12 for _ in range(12)]  # 3 MiB
batches = [random.standard_normal((64, 256), np.float32) for _ in range(10)]
with sg.Context() as context:
    pipeline = context.pipeline((64, 256), "f32", memory_limit="2MiB")
    for w in layers:
        stage = pipeline.stage((64, 256), weights=[w])
        stage.gemm(stage.input, stage.weights[0], stage.output, activation="relu")
    jobs = [pipeline.push_async(x) for x in batches]
    for x, job in zip(batches, jobs):
        for w in layers:
            x = np.maximum(x @ w, 0)
        np.testing.assert_allclose(job.result(), x, rtol=1e-3, atol=1e-3 * x.max())
    assert context.metrics.device_bytes <= 2 << 20
