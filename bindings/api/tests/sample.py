# SPDX-License-Identifier: Apache-2.0
# fmt: off
"""Python's definition of the operation in sample.h, for golden_test.py."""


class Context:
    def sample(x, out=None, *, shift=None, low=0.0, high=1.0, outside='limit', signs=False) -> "out":
        """out = x within limits.

        x, out: as for elementwise_async. shift: a vector with a value for each column, which moves the limits; None: zeros.
        low, high: the limits. outside: "limit" or "nan". signs: the limits are those of absolute values.
        """
        return sample(x=x, y=out, shift=shift, low=low, high=high, outside=outside, signs=signs)
