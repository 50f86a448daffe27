# SPDX-License-Identifier: Apache-2.0
"""The table operations.inc of Python's operations, for python/src/operation.c: from the definitions' native calls, which name the
fields of a descriptor, and from the markers of its operands."""
import ast
import re

from calls import LINEAR_AS_GEMM
from names import pascal

MATRICES = {"sg_matrix": "OF_ROWS", "sg_heads": "OF_HEADS", "sg_sequence": "OF_SEQUENCE", "sg_images": "OF_IMAGES"}
NUMBERS = {"int32_t": "OPTION_BOOL", "uint32_t": "OPTION_INT32", "int64_t": "OPTION_INT64", "uint64_t": "OPTION_SIZE",
           "double": "OPTION_DOUBLE", "sg_scalar": "OPTION_SCALAR", "sg_windows": "OPTION_WINDOWS"}
OWN = ("dtype", "batch_first", "axis", "waits")  # arguments of a native call that are no fields
TYPES = {"gradient_dtype": "TYPE_OF_GRADIENTS", "wide": "TYPE_WIDE", "i8": "TYPE_I8", "i32": "TYPE_I32"}
FACTOR = re.compile(r"\w+")


class Rule:
    """A definition whose native call is of an operation of the headers."""

    def __init__(self, model, definition, number):
        call = definition.body[-1].value
        self.operation = next(o for o in model.operations if o.name == call.func.id)
        self.model, self.definition, self.number, self.desc = model, definition, number, self.operation.desc
        own = {name: ast.Name(name, ast.Load()) for name, *_ in definition.parameters if self.is_field(name)}
        given = {**own, **{k.arg: k.value for k in call.keywords}}
        self.given = {k: v for k, v in given.items() if ast.unparse(v) != "None"}
        self.operands = [f for f in self.desc.fields if f.marker]
        self.stack = next((f for f, v in self.given.items() if ast.unparse(v).split(".")[0] == "STACK"), None)
        self.options = [f for f in self.desc.fields if not f.marker and f.name in self.given and f.name != self.stack]
        known = {f.name for f in self.desc.fields} | set(OWN)
        if set(self.given) - known:
            raise SystemExit(f"{definition.name}: {sorted(set(self.given) - known)} are no fields of {self.desc.name}")
        self.dims = {f.name: self.dims_of(f) for f in self.operands}
        factors = [s for f in self.operands for d in self.dims[f.name] for s in FACTOR.findall(d) if not s.isdigit()]
        kernel = ["kernel_h", "kernel_w"] if self.has("windows") else []
        self.symbols = list(dict.fromkeys(factors + kernel))

    def is_field(self, name):
        return name in OWN or any(f.name == name for f in self.desc.fields)

    def has(self, name):
        return any(f.name == name for f in self.desc.fields)

    def is_size(self, name):
        return any(f.name == name and f.type == "int64_t" for f in self.desc.fields)

    def arguments(self):
        """What the native call takes between the target and the order."""
        def value(name):
            return self.given.get(name, ast.Constant(None))

        values = ast.Tuple([value(f.name) for f in self.operands + self.options], ast.Load())
        others = [self.given.get(name, ast.Constant(usual)) for name, usual in (("batch_first", False), ("axis", -1), ("waits", False))]
        return [ast.Constant(self.number), values, value("dtype"), *others]

    def shown(self, field):
        """The name in messages: the parameter's."""
        value = self.given.get(field.name)
        return value.id if isinstance(value, ast.Name) else field.name

    def names(self):
        """What the fields of the descriptor are called in messages, where that is another name: the parameters', or what they follow from."""
        named = {f.name: self.name_of(f) for f in self.desc.own}
        if self.has("windows"):
            kernel = "kernel" if "kernel" in self.parameters else f"{self.shown(self.by_kind('OF_FILTERS'))}.shape"
            sides = {"kernel": kernel, "stride": "stride", "dilation": "dilation", "pad": "padding"}
            windows = self.model.structs["sg_windows"].own
            named |= {f"windows.{f.name}": sides[f.name.split("_")[0]] for f in windows}
        if self.operation.name == "linear":  # which is planned as a GEMM
            named |= {of: named[field] for field, of in LINEAR_AS_GEMM.items()}
        return {field: name for field, name in named.items() if name != field}

    @property
    def parameters(self):
        return [name for name, *_ in self.definition.parameters]

    def by_kind(self, kind):
        return next(f for f in self.operands if self.kind(f) == kind)

    def name_of(self, field):
        if self.shown(field) in self.parameters:
            return self.shown(field)
        value = self.given.get(field.name)
        if value is not None:  # of a statement before, which computes it from parameters
            read = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            for statement in self.definition.body[:-1]:
                names = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)]
                if read & set(names):
                    return next((n for n in names if n in self.parameters), field.name)
        for operand in (f for f in self.operands if field.name in f.marker.shape):
            at = operand.marker.shape.index(field.name)
            if self.kind(operand) == "OF_HEADS":
                return f"{self.shown(operand)}.shape[{at - 4}]"
            if self.kind(operand) == "OF_SEQUENCE" and at == 2:
                return f"{self.shown(operand)}.shape[-1]"
            return f"the {field.name.removeprefix('out_')} of {self.shown(operand)}"
        typed = [f for f in self.operands if f.marker.dtype == field.name] or self.operands
        if field.name in ("dtype", "gradient_dtype") or typed is not self.operands:
            return f"{self.shown(typed[0])}.dtype"
        strided = [f for f in self.operands if f.marker.stride == field.name]
        return f"{self.shown(strided[0])}.strides" if strided else field.name

    def kind(self, field):
        if field.marker.dtype == "index_type":
            return "OF_INDICES"
        if field.marker.shape == ("elements",):
            return "OF_ELEMENTS"
        if field.type == "sg_heads" and field.marker.shape[-1] == "keys":
            return "OF_SCORES"
        if field.type == "sg_matrix" and field.marker.shape[0] != "rows" and field.marker.shape[0] != "positions":
            return "OF_MATRIX"
        return MATRICES.get(field.type) or ("OF_FILTERS" if len(field.marker.shape) == 4 else "OF_VALUES")

    def dims_of(self, field):
        """Its dimensions; those of values that are a product of sizes are several."""
        dims = []
        for dim in field.marker.shape:
            factors = dim.split("*")
            dims += factors if self.kind(field) == "OF_VALUES" and all(map(self.is_size, factors)) else [dim]
        return dims

    def offset(self, field):
        return f"offsetof({self.desc.name}, {field})"

    def operand(self, field, results):
        marker, kind = field.marker, self.kind(field)
        own = marker.dtype if marker.dtype and self.has(marker.dtype) and marker.dtype != "gradient_dtype" else None
        matrices = any(f.type == "sg_matrix" for f in self.operands)
        untyped = any(f.type == "sg_images" for f in self.operands)
        common = "TYPE_COMMON" if untyped or not matrices else "TYPE_OWN" if field.type == "sg_matrix" else "TYPE_OF_RESULT"
        letters = [FACTOR.sub(lambda m: m[0] if m[0].isdigit() else chr(ord("a") + self.symbols.index(m[0])), d) for d in self.dims[field.name]]
        needed = None if marker.zeros else marker.needed_for
        words = {
            "name": f'"{self.shown(field)}"', "offset": self.offset(field.name), "kind": kind,
            "written": "true" if marker.written else None, "optional": "true" if marker.optional else None,
            "is_read": "true" if marker.access == "inout" else None,
            "result": results.index(self.shown(field)) if self.shown(field) in results else -1,
            "needed_for": [f.name for f in self.operands].index(needed) if needed else -1,
            "batch_dim": self.dims[field.name].index("batch") if kind == "OF_VALUES" and "batch" in self.dims[field.name] and self.has("steps") else -1,
            "type": TYPES.get(marker.dtype, "TYPE_OWN" if own else common),
            "type_offset": self.offset(own) if own else None, "op_offset": self.offset(marker.op) if marker.op else None,
            "dims": "{" + ", ".join(f'"{d}"' for d in letters) + "}",
        }
        return "{" + ", ".join(f".{k} = {v}" for k, v in words.items() if v is not None) + "}"

    def option(self, field):
        enum = field.type in self.model.enums
        kind = "OPTION_ENUM" if enum else NUMBERS[field.type]
        return f'{{"{self.shown(field)}", {self.offset(field.name)}, {kind}, "{pascal(field.type) if enum else ""}"}}'

    def text(self):
        """The initialiser of an operation_rule."""
        name, desc = self.operation.name, self.desc.name
        results = self.definition.result.strip("()").split(", ")
        fields = {"type_offset": "dtype", "gradient_offset": "gradient_dtype", "accumulate_offset": "accumulate", "windows_offset": "windows",
                  "image_layout": "image_layout", "filter_layout": "columns" if self.has("columns") else "filter_layout", "cell": "cell"}
        words = {
            "name": f'"{self.definition.name}"', "number": f"SG_CALL_NUMBER_{name}", "run_to_its_end": f"run_{name}_to_its_end" if self.definition.waits else None, "size": f"sizeof({desc})",
            "initial": f"&(const {desc}){desc.upper()}_INIT",
            "operands": "{" + ", ".join(self.operand(f, results) for f in self.operands) + "}",
            "operand_count": len(self.operands), "result_count": len(results), "symbol_count": len(self.symbols),
            "option_count": len(self.options), "results_are_tuple": "true" if self.definition.result.startswith("(") else None,
            "products": "true" if self.has("compute") else None,
            "symbols": "{" + ", ".join(f'{{"{s}", {self.offset(s) if self.is_size(s) else -1}}}' for s in self.symbols) + "}",
            "options": "{" + ", ".join(map(self.option, self.options)) + "}" if self.options else None,
            **{key: self.offset(field) for key, field in fields.items() if self.has(field)},
            "rule": next((m for m in self.definition.marks if m.startswith("rule_")), None),
        }
        if self.stack:
            words["stack_offset"] = self.offset(self.stack)
            _, _, condition = ast.unparse(self.given[self.stack]).partition(".")
            words["stack_if"] = self.offset(condition) if condition else None
        return "{" + ", ".join(f".{k} = {v}" for k, v in words.items() if v is not None) + "}"


def table(rules):
    """operations.inc."""
    yield "/* Written from the public headers and python/operations.py by bindings/api/python.py. */"
    for operation in {r.operation.name: r.operation for r in rules}.values():
        name = operation.name
        yield f'_Static_assert(sizeof({operation.desc.name}) <= MAX_DESC, "see MAX_DESC");'
        if any(r.definition.waits for r in rules if r.operation is operation):
            yield f"static sg_status run_{name}_to_its_end(sg_context *on, const void *desc, const sg_submit *submit) {{"
            yield f"  return sg_{name}(on, desc, submit);\n}}"
    yield "static const operation_rule operation_rules[] = {"
    for rule in rules:
        yield f"    /* {rule.definition.name} */ {rule.text()},"
    yield "};"
