# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Which digit is it?
# 1797 handwritten digits, classified by their nearest neighbours. Editors show this file as a notebook; it is a plain
# program too: `python3 notebook.py digits.csv [DEVICE]`.

# %%
import sys

import numpy as np
import streamgemm as sg

if len(sys.argv) < 2:
    sys.exit("usage: notebook.py DIGITS.csv [DEVICE]    DIGITS.csv: examples/data/digits.csv")
path, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "auto"
table = np.loadtxt(path, delimiter=",", dtype=np.float32)
x, label = np.ascontiguousarray(table[:, :64]), table[:, 64].astype(int)
context = sg.Context(device)
context.device

# %% [markdown]
# All distances at once: |x - y|^2 = |x|^2 + |y|^2 - 2 x.y, and the x.y of all pairs are one GEMM. It is submitted in
# blocks of rows. While one block is being multiplied, NumPy classifies the completed ones: `as_completed` is Python's
# own.

# %%
from concurrent.futures import as_completed  # noqa: E402

blocks = [slice(i, min(i + 128, len(x))) for i in range(0, len(x), 128)]
jobs = {context.gemm_async(x[rows], x, op_b="T"): rows for rows in blocks}
length, nearest = (x * x).sum(axis=1), np.empty(len(x), int)
for job in as_completed(jobs):
    rows = jobs[job]
    distance = length[rows, None] + length - 2 * job.result()
    distance[np.arange(len(distance)), np.arange(rows.start, rows.stop)] = np.inf  # not itself
    nearest[rows] = distance.argmin(axis=1)

accuracy = (label[nearest] == label).mean()
print(f"one nearest neighbour, leave one out: {accuracy:.6f} (known: 0.988314)")
assert f"{accuracy:.6f}" == "0.988314"

# %% [markdown]
# What would a million such digits cost on a GPU that is not present? Nothing is allocated: a plan is arithmetic.

# %%
with sg.Context("sim:h200") as h200:
    million = sg.Matrix.placeholder((1_000_000, 64), place="pageable")
    block = sg.Matrix.placeholder((16_384, 64), place="pageable")
    plan = h200.plan(block, million, op_b="T")
    print(plan)
    print(plan.timeline)
    prediction = plan.prediction
    print(
        f"{prediction.predicted_seconds * 61:.1f} s for all 61 blocks; the link alone takes "
        f"{prediction.bytes_out * 61 / h200.device.link_out_bytes_per_second:.1f} s"
    )

# %%
context.close()
