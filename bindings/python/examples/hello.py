# SPDX-License-Identifier: Apache-2.0
import numpy as np
import streamgemm as sg

a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
b = np.array([[7, 8], [9, 10], [11, 12]], np.float32)

print(sg.matmul(a, b))  # waits

job = sg.matmul_async(a, b)  # returns at once; the GPU if there is one, else the CPU
print(job.result())
assert (job.result() == a @ b).all()
