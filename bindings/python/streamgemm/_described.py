# SPDX-License-Identifier: Apache-2.0
"""Descriptions of operations: what is planned, recorded and run."""

from ._messages import brief
from ._tables import DEFAULT_ORDER

# What is done with a description, as in src/submission.h.
PLAN, SUPPORTS, UPDATE, RUN = 1, 2, 3, 4


class OperationDesc:
    """An operation and its operands, by a function of streamgemm.operations. Nothing is read before a call uses it."""

    __slots__ = ("_call", "name")

    def __init__(self, name, call):
        """name: that of the function. call: makes the native call, of how, target and order."""
        self.name = name
        self._call = call

    def _use(self, how, target, order=DEFAULT_ORDER):
        return self._call(how, target, order)

    def __repr__(self):
        return f"<streamgemm.OperationDesc {self.name}>"


def description(operation):
    if not isinstance(operation, OperationDesc):
        raise TypeError(f"operation is {brief(operation)}, which no function of streamgemm.operations has made")
    return operation


def is_supported(operation, target):
    return description(operation)._use((SUPPORTS,), target)


__all__ = ["PLAN", "RUN", "UPDATE", "OperationDesc", "description", "is_supported"]
