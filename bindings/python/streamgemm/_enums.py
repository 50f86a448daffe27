# SPDX-License-Identifier: Apache-2.0
"""The enums of the public headers. Its lower-case name may be used instead: compute="tf32"."""

import enum
import operator
import re

from ._errors import InvalidArgument
from ._messages import brief, none_of
from ._tables import ENUMS


# A name that begins with a digit cannot be an attribute: 3XTF32 is _3XTF32.
for _name, (_doc, _members) in ENUMS.items():
    globals()[_name] = enum.IntEnum(_name, _members, module="streamgemm")
    globals()[_name].__doc__ = _doc


def names(kind):
    """{"tf32": 1, ...}; for ops the capital letters of BLAS too."""
    lower = {member.name.lstrip("_").lower(): int(member) for member in kind}
    return {**lower, **{name.upper(): value for name, value in lower.items()}}


def all_names():
    return {name: names(globals()[name]) for name in ENUMS}


def integer(given, argument, low=-(1 << 31), high=(1 << 31) - 1):
    """An integer in a range, or an error that names the argument."""
    try:
        value = operator.index(given)
    except TypeError:
        raise TypeError(f"{argument} is {brief(given)}, which is no integer") from None
    if not low <= value <= high:
        raise InvalidArgument(f"{argument} is {value}; it must be from {low} to {high}")
    return value


_UNITS = {"": 1, "b": 1, **{f"{p}{b}": k ** (i + 1) for b, k in (("b", 1000), ("ib", 1024)) for i, p in enumerate("kmgt")}}


def size_of(given, argument):
    """Bytes: a number, or a text such as "8MiB"."""
    if not isinstance(given, str):
        return given
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", given.lower())
    if not found or found[2] not in _UNITS:
        raise InvalidArgument(f'{argument} is {given!r}; it must be a number of bytes, or a text such as "8MiB" or "1.5GB"')
    return int(float(found[1]) * _UNITS[found[2]])


def set_fields(struct, given, known, kinds):
    """Sets the fields of an options struct that are given by name; kinds: the enums of some."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(none_of(name, known))
        set_field(struct, name, value_of(kinds[name], value, name) if name in kinds else value)


def set_field(struct, name, value):
    """Sets a field of an options struct; an error names it."""
    try:
        setattr(struct, name, size_of(value, name) if name == "memory_limit" else value)
    except (OverflowError, TypeError) as refused:
        kind = TypeError if isinstance(refused, TypeError) else InvalidArgument
        raise kind(f"{name} is {brief(value)}, which this option cannot be") from None


def value_of(kind, given, argument):
    """The value of an enumerator, given as the enumerator, a number or a name."""
    if isinstance(given, int):
        return int(given)
    try:
        return names(kind)[given]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{argument} is {brief(given)}, which is none of {list(names(kind))}") from None
