# SPDX-License-Identifier: Apache-2.0
"""Translates the library's messages: fields of C structs are arguments in Python."""

import re

# In this order: the special ones first.
_RULES = [
    (
        r"(desc|descs\[\d+\])->stride_c is (-?\d+); items of C that span (\d+) elements would overlap",
        r"the items of \1->c overlap in memory: each spans \3 elements, and they are \2 apart",
    ),
    (r"^desc (?=differs|leaves)", "the GEMM "),
    (r"\bdescs\b(?!\[)", "products"),
    (r"\bdescs\[(\d+)\]->?", r"products[\1]: "),
    (r"\bdescs\[(\d+)\]", r"products[\1]"),
    (r"\b(?:desc|submit|options|plan)->", ""),
    (r"\b([abc])_array\b", r"\1"),
    (r"\b([abc])\.data\b", r"\1"),
    (r"\bmemory is NULL", "the array has no memory"),
    (r" is NULL", " has no memory"),
    (r"\bbytes is 0$", "nbytes is 0"),
    (r"->", "."),
]
_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _RULES]


def in_python(message):
    """The message with Python names."""
    for pattern, replacement in _COMPILED:
        message = pattern.sub(replacement, message)
    return message
