# SPDX-License-Identifier: Apache-2.0
"""Messages: names of arguments, which the library marks, from C to Python; values; unknown options."""

import re
import types

from ._tables import NAMES

# A marked name: a parameter, or a struct, perhaps one of an array, and the path to a field: descs[2]->b.rows; of a plan operation->desc->b.rows.
_NAME = re.compile(r"\x01(?:operation->(?=desc|operation\b))?(\w+)(?:\[(\d+)\])?((?:->\w+(?:\[\d+\])?)*)((?:\.[a-z_]\w*)?)")
_PARAMETERS = {"NULL": "at address 0", "desc": "the call", "descs": "products", "bytes": "nbytes", "input": "x", "inputs": "x", "output": "out", "outputs": "out"}
_COMPONENTS = {".data": "", ".rows": ".shape[-2]", ".cols": ".shape[-1]", ".ld": ".strides", ".layout": ".strides", ".re": ".real", ".im": ".imag"}
_OPTIONS = {"timeout_ns": "timeout", "flags": "untracked", "plan": "options"}


def _field(path, names):
    """A field of a descriptor, perhaps an entry of it."""
    field, bracket, index = path.partition("[")
    return names.get(field, field.removesuffix("_array")) + bracket + index


def _name(found, names):
    root, index, path, component = found.groups()
    path = path.removeprefix("->")
    if not path:
        name = _PARAMETERS.get(root, root)
        return name + (f"[{index}]" if index else "")
    if root in ("submit", "options"):
        return _OPTIONS.get(path) or path.removeprefix("plan->").replace("->", ".")
    whole, _, part = (path + component).partition(".")
    name = names.get(f"{whole}.{part}") or _field(whole, names) + _COMPONENTS.get(component, ".strides" if component.endswith("stride") else component)
    return f"products[{index}].{name}" if index else name


def in_python(message, operation):
    """The message of a call with Python names; operation: the method that was called, or ""."""
    names = NAMES.get(operation, {})
    return _NAME.sub(lambda found: _name(found, names), message)


def brief(value):
    """A value in a message: an array by its shape, others cut."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, (tuple, list)) and not isinstance(value, type):
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def none_of(name, known):
    """What a message says of an option that is unknown, with the nearest one of those that are known."""
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    return f"{name} is none of the options{f'; did you mean {near[0]}?' if near else '.'} There are {', '.join(known)}"


def refuse_unknown(method, unknown, known):
    """Raises for keyword arguments that a method lacks."""
    raise TypeError(f"{method}: {none_of(next(iter(unknown)), known)}")


def named(owner, methods):
    """The methods of a class as those of its public subclass, in messages; `unknown` is no part of their signatures."""
    for name, method in vars(methods).items():
        if isinstance(method, types.FunctionType):
            method.__qualname__ = f"{owner}.{name}"
            signed(method)


def signed(method):
    """A function whose signature does not show `unknown`, the last keywords that it takes."""
    shown = types.FunctionType(method.__code__.replace(co_flags=method.__code__.co_flags & ~8), {}, method.__name__, method.__defaults__)
    shown.__kwdefaults__ = method.__kwdefaults__
    method.__wrapped__ = shown
