# SPDX-License-Identifier: Apache-2.0
"""Names and comments of the headers in another language."""
import re

SPECIAL = {"dtype": "DType", "im2col": "Im2Col", "col2im": "Col2Im"}


def pascal(name):
    """sg_memory_kind -> MemoryKind, 3XTF32 -> Tf32x3, dout -> DO."""
    words = [re.sub(r"^(\d+)x(\w+)$", r"\2x\1", w) for w in name.removeprefix("sg_").lower().split("_")]
    return "".join(SPECIAL.get(w, w[:1].upper() + w[1:]) for w in words)


def camel(name):
    made = pascal(name)
    return made[:1].lower() + made[1:]


def prose(text, constants, left_out="null", names=pascal):
    """A comment in a language's words: `constants` are its names of enumerators, `left_out` its NULL for an operand."""
    text = re.sub(r"\s*\bSince \d+\.\d+\.", "", text)
    text = re.sub(r":\s*\|.*\|(?=\s)", ".", text, flags=re.S)  # a table, which the page of types.h has
    text = re.sub(r"@\w+(\[[\w,]+\])?\s*", "", text)
    text = re.sub(r"(?:The struct's )?SG_\w+_INIT sets (?=[\w.+-])", "Default: ", text)
    text = re.sub(r"SG_\w+_INIT: ", "Default: ", text)
    text = re.sub(r"\bSG_[A-Z0-9_]+\b", lambda m: constants.get(m[0], m[0]), text)
    text = re.sub(r"\bsg_(\w+?)_desc\b(?:\.(\w+))?", lambda m: f"{names(m[1])}" + (f".{names(m[2])}" if m[2] else ""), text)
    text = re.sub(r"\bsg_(\w+?)_(?:async)\b", lambda m: names(m[1]), text)
    text = re.sub(r"\bsg_(\w+_flags|dtype|layout|image_layout|filter_layout|gate_order)\b", lambda m: pascal(m[1]), text)
    text = re.sub(r"(?:\bdata |a data pointer that is |whose data pointer is )?\bNULL\b", left_out, text)
    return " ".join(text.split())
