# SPDX-License-Identifier: Apache-2.0
"""A product by NumPy, which calls the system's BLAS, compared with one without BLAS."""
import numpy as np

a, b = (np.random.default_rng(seed).standard_normal((64, 64)) for seed in (1, 2))
np.testing.assert_allclose(a @ b, np.einsum("ij,jk->ik", a, b, optimize=False), rtol=1e-10, atol=1e-12)
