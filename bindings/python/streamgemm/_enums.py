# SPDX-License-Identifier: Apache-2.0
"""The enums of the public headers. Its lower-case name may be used instead: compute="tf32"."""

import enum
import operator

from . import _raw
from ._errors import InvalidArgument


def _enum(name, prefix, doc):
    members = {
        key[len(prefix) :]: value
        for key, value in vars(_raw).items()
        if key.startswith(prefix) and isinstance(value, int)
    }
    # A name that begins with a digit cannot be an attribute: 3XTF32 is _3XTF32.
    made = enum.IntEnum(
        name, {("_" if key[0].isdigit() else "") + key: value for key, value in members.items()}, module="streamgemm"
    )
    made.__doc__ = doc
    return made


Status = _enum("Status", "SG_STATUS_", "What a call or a job answers.")
Op = _enum("Op", "SG_OP_", "The operation applied to an operand before the multiplication.")
Compute = _enum("Compute", "SG_COMPUTE_", "The least accurate arithmetic that the caller allows.")
Activation = _enum("Activation", "SG_ACTIVATION_", "What is applied to each element of a result.")
Function = _enum("Function", "SG_FUNCTION_", "A function of elements.")
Mask = _enum("Mask", "SG_MASK_", "Which elements a softmax leaves out.")
Quantization = _enum("Quantization", "SG_QUANTIZATION_", "How a quantized value is stored.")
GateOrder = _enum("GateOrder", "SG_GATE_ORDER_", "Order of the gates in the weights of a recurrent layer.")
RotaryPairs = _enum("RotaryPairs", "SG_ROTARY_", "Which elements of a head a rotary embedding rotates together.")
IndexType = _enum("IndexType", "SG_INDEX_", "Type of the indices of a gather.")
ImageLayout = _enum("ImageLayout", "SG_IMAGE_", "The order of the elements of an image.")
FilterLayout = _enum("FilterLayout", "SG_FILTER_", "The order of the elements of a filter.")
Split = _enum("Split", "SG_SPLIT_", "How a problem is cut.")
MemoryKind = _enum("MemoryKind", "SG_MEMORY_", "The memory space of an address, as seen from a context's device.")
LinkClass = _enum("LinkClass", "SG_LINK_", "Class of the connection between two devices.")
WhenFull = _enum(
    "WhenFull", "SG_WHEN_FULL_", "What a submission does when as many jobs are in flight as the context allows."
)
WeightsPlace = _enum("WeightsPlace", "SG_WEIGHTS_", "Where the weights of a pipeline's stage are while batches run.")
TraceFormat = _enum("TraceFormat", "SG_TRACE_", "Format of a written trace.")
PlanFormat = _enum("PlanFormat", "SG_PLAN_", "Form of a plan's description.")


def names(kind):
    """{"tf32": 1, ...}; for ops the capital letters of BLAS too."""
    lower = {member.name.lstrip("_").lower(): int(member) for member in kind}
    return {**lower, **{name.upper(): value for name, value in lower.items()}}


def all_names():
    return {name: names(kind) for name, kind in globals().items() if isinstance(kind, enum.EnumMeta)}


def integer(given, argument, low=-(1 << 31), high=(1 << 31) - 1):
    """An integer in a range, or an error that names the argument."""
    try:
        value = operator.index(given)
    except TypeError:
        raise TypeError(f"{argument} is {given!r}, which is no integer") from None
    if not low <= value <= high:
        raise InvalidArgument(f"{argument} is {value}; it must be from {low} to {high}")
    return value


def set_field(struct, name, value):
    """Sets a field of an options struct; an error names it."""
    try:
        setattr(struct, name, value)
    except (OverflowError, TypeError) as refused:
        kind = TypeError if isinstance(refused, TypeError) else InvalidArgument
        raise kind(f"{name} is {value!r}, which this option cannot be") from None


def value_of(kind, given, argument):
    """The value of an enumerator, given as the enumerator, a number or a name."""
    if isinstance(given, int):
        return int(given)
    try:
        return names(kind)[given]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{argument} is {given!r}, which is none of {list(names(kind))}") from None
