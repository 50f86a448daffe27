# SPDX-License-Identifier: Apache-2.0
"""The calls of Java and C#: which fields of an operation's descriptor are arguments, in which order, and which are options. An
operation that is not in the table has its operands as arguments, in the descriptor's order; all else are options, or follow
from operands."""
import dataclasses
import re


# operation [FIELD=VALUE as NAME]: arguments. `!`: with a check by hand, of the arguments and the options behind it; `fields...` in brackets: one argument, a class of
# gradients with these fields.
TABLE = """
elementwise!: function a b c
axpby: a c
softmax: x y
norm kind=SG_NORM_LAYER as layer_norm: x gamma beta y
norm kind=SG_NORM_RMS as rms_norm: x gamma y
norm_backward kind=SG_NORM_LAYER as layer_norm_backward: dy x gamma dx dgamma dbeta
norm_backward kind=SG_NORM_RMS as rms_norm_backward: dy x gamma dx dgamma
rotary: x y
rotary_backward: dy dx
convert: a op_a c
dequantize: quantization block_size x scales zero_points y
gather: table indices y
linear!op_w: x w y
linear_backward: dy x w dx dw dbias
attention: q k v o
attention_backward: q k v dout dq dk dv
conv2d: x w y windows
conv2d_backward: dy windows x w dx dw dbias
pool2d: x y windows
pool2d_backward: dy x windows dx
im2col: x matrix windows
col2im: matrix x windows accumulate
recurrent: x w_ih w_hh y
recurrent_backward: x w_ih w_hh y [dy dhn dcn dx dw_ih dw_hh dbias_ih dbias_hh dh0 dc0 accumulate]
"""
BY_HAND = ("gemm", "custom", "all_reduce")  # operations whose calls are not of this form
VIEWS = {"sg_matrix": "matrix", "sg_heads": "heads", "sg_images": "images", "sg_sequence": "sequence"}
# Other calls with a handle, a descriptor and submit options, in the order of their numbers (bindings/calls.h); then the operations.
SPECIAL = ("gemm_and_wait", "gemm_grouped", "copy", "plan_run", "graph_run", "pipeline_push", "pipeline_push_batches")
# Fields of a linear layer in the GEMM that it is, as which it is planned (calls.h).
LINEAR_AS_GEMM = {"x": "a", "w": "b", "y": "c", "op_w": "op_b"}
FOLLOWS_WINDOWS = ("sg_filter_layout",)  # types of fields that the windows say
FOLLOWS_IMAGES = ("sg_image_layout",)


def kind_of(field):
    """The language's type of an operand: a view, `flat` memory whose shape the descriptor says, or `indices`."""
    return VIEWS.get(field.type) or ("indices" if field.marker.dtype == "index_type" else "flat")


def fixed_type(field):
    """The type that an operand has whatever the others have; None: theirs."""
    return field.marker.dtype if re.fullmatch(r"[a-z]+\d+", field.marker.dtype or "") else None


def has_elements(field):
    """Whether an operand is contiguous memory of any shape."""
    return field.marker.shape == ("elements",)


@dataclasses.dataclass
class Call:
    """One method of the wrappers, and its descriptor."""

    name: str
    operation: object
    fixed: dict
    arguments: list  # fields, "windows" among them by its field; "gradients"
    gradients: list  # fields of that argument
    options: list
    by_hand: list  # names of the options of a check besides the generated ones; None: without one

    @property
    def desc(self):
        return self.operation.desc

    @property
    def owner(self):
        """The operation whose options these are."""
        return self.operation.name.removesuffix("_backward")

    @property
    def operands(self):
        """The operands in the descriptor's order."""
        return [f for f in self.desc.own if f.marker and self.place(f)]

    @property
    def given(self):
        """The operands and the other fields that a caller gives."""
        return [f for f in self.desc.own if self.place(f)]

    def place(self, field):
        """Where a caller gives a field: "arguments", "gradients", "options", or None."""
        for where in ("arguments", "gradients", "options"):
            if field in getattr(self, where):
                return where
        return None

    def is_sized(self, field):
        """Whether the shape of an operand is in its view."""
        return kind_of(field) in ("heads", "images", "sequence")

    @property
    def sizes(self):
        """Each symbol of the views' shapes, with the operands and dimensions that determine it."""
        found = {}
        for field in self.operands:
            if self.is_sized(field):
                for at, symbol in enumerate(field.marker.shape):
                    if symbol not in ("out_h", "out_w"):
                        found.setdefault(symbol, []).append((field, at))
            elif has_elements(field):
                found.setdefault("elements", []).append((field, 0))
        return found

    @property
    def results(self):
        return [f for f in self.operands if f.marker.written and not f.marker.optional]

    @property
    def needs_options(self):
        """Whether a required operand is among the options."""
        return any(f.marker and not f.marker.optional for f in self.options)


def follows(desc, field):
    """Whether a field follows from operands or windows."""
    markers = [f.marker for f in desc.own if f.marker]
    sizes = {s for m in markers for s in m.shape} if field.type == "int64_t" else set()
    return (field.name in sizes | {m.dtype for m in markers} | {m.stride for m in markers} or field.type == "sg_dtype" or field.type in FOLLOWS_WINDOWS + FOLLOWS_IMAGES
            or field.name in ("first_channel", "used_channels"))


def call_of(operation, name, fixed, words, gradients, by_hand):
    desc = operation.desc
    own = [f for f in desc.own if f.name not in fixed and (f.marker or not follows(desc, f))]
    of = {f.name: f for f in own}
    arguments = [of[w] if w != "gradients" else w for w in words]
    group = [of[g] for g in gradients]
    rms_has_none = [f for f in own if fixed.get("kind") == "SG_NORM_RMS" and f.name in ("beta", "dbeta")]
    options = [f for f in own if f not in arguments and f not in group and f not in rms_has_none]
    return Call(name, operation, fixed, arguments, group, options, by_hand)


def calls_of(model):
    operations = {o.name: o for o in model.operations if o.name not in BY_HAND}
    found, told = [], set()
    for line in TABLE.strip().splitlines():
        head, _, words = line.partition(": ")
        parsed = re.fullmatch(r"(\w+)(?:!(\w*))?(?: (\w+)=(\w+) as (\w+))?", head)
        if parsed[1] not in operations:
            continue
        group = re.search(r"\[(.*)\]", words)
        words = re.sub(r"\[.*\]", "gradients", words).split()
        fixed = {parsed[3]: parsed[4]} if parsed[3] else {}
        found.append(call_of(operations[parsed[1]], parsed[5] or parsed[1], fixed, words, group[1].split() if group else [],
                             None if parsed[2] is None else parsed[2].split()))
        told.add(parsed[1])
    for operation in operations.values():
        if operation.name not in told:
            words = [f.name for f in operation.desc.own if f.marker and not f.marker.optional]
            required = [f.name for f in operation.desc.own if is_required(f) and not follows(operation.desc, f)]
            found.append(call_of(operation, operation.name, {}, required + words, [], None))
    return found


def is_required(field):
    """Whether a scalar has no initial value that is one."""
    return not field.marker and isinstance(field.init, str) and field.init.startswith("(sg_")


def options_of(calls):
    """The fields of each class of options, by the operation's name: those of its calls, each once."""
    found = {}
    for call in calls:
        fields = found.setdefault(call.owner, {})
        for field in call.options:
            fields.setdefault(field.name, field)
    return {owner: list(fields.values()) for owner, fields in found.items() if fields}


def options_of_gemm(model):
    """The fields of a GEMM's descriptor that a caller sets: all but operands, their arrays, and the shape of the bias."""
    return [f for f in model.structs["sg_gemm_desc"].own if not f.pointer and not f.marker and f.name != "bias_shape"]


def dimension(expression, symbols):
    """A product or quotient of a shape, with its symbols replaced by a function."""
    return re.sub(r"[A-Za-z_][\w.]*", lambda m: symbols(m[0]), expression)


def flags_type(model, field):
    """The enum whose values a field of flags has."""
    found = re.match(r"(sg_\w+_flags)\b", field.doc)
    return found[1] if found and found[1] in model.enums else None


def is_switch(field):
    """Whether an integer is a boolean."""
    return field.type == "int32_t" and field.doc.startswith("1: ")


def sentence(text):
    return text[:1].upper() + text[1:]


def operand_doc(field):
    """What the comment of an operand says, with its access."""
    text = field.doc.rstrip()
    shape = field.marker.shape
    facts = []
    if shape and kind_of(field) == "flat" and not re.search(r" x |\bvalues\b|Likewise", text):
        facts.append(f"{' x '.join(shape)} contiguous values.")
    if field.marker.access == "in" and "read only" not in text:
        facts.append("Only read.")
    if field.marker.needed_for:
        facts.append(f"Not needed without {field.marker.needed_for}.")
    elif field.marker.optional and "NULL" not in text and "Not used" not in text:
        facts.append("If left out, it is not computed." if field.marker.written else "May be left out.")
    return " ".join([text, *facts])


def about(operation):
    """What an operation is, from the comments of its descriptor: the text behind "Descriptor of"."""
    text = re.sub(r"^Descriptor of (one )?", "", operation.desc.doc)
    return re.sub(r"\s*Since \d+\.\d+\.", "", text)
