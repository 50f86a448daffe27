# SPDX-License-Identifier: Apache-2.0
"""What the emitters of Java and C# share: the statements of a call, from the markers of the header. A language says how an
operand is named, tested and stored; the hand-written Shapes and the views have the checks."""
import re

import calls
from calls import kind_of
from names import prose

VIEWS = {"matrix": "Matrix", "flat": "Matrix", "heads": "Heads", "images": "Images", "sequence": "Sequence", "indices": "Indices"}


class Managed:
    """An emitter. A language defines: constants, is_given, type_of_operand, dimension_of, dimension_name, component_name, call_of, missing, option_form, and the
    statements that store into a descriptor."""

    any_type = "0"
    long = "long"
    throws_null = None  # a statement that refuses a missing argument
    out = ""  # before a stride that a check sets

    def __init__(self, model):
        self.model = model
        self.calls = calls.calls_of(model)
        self.options = calls.options_of(self.calls)

    def text(self, comment, left_out="null"):
        return self.escape(prose(comment, self.constants, left_out, self.case))

    def by_name(self, call, name):
        return next(f for f in call.desc.own if f.name == name)

    def is_zero(self, field):
        """Whether an option's initial value is its type's zero."""
        start = field.init
        return isinstance(start, list) or re.fullmatch(r"0|0\.0|\(\w+\)0|NULL", start) or any(
            v.name == start and v.value == "0" for e in self.model.enums.values() for v in e.values)

    def option_name(self, field):
        """A descriptor's flags are named as their type, since the submission has flags, too."""
        return self.case(calls.flags_type(self.model, field) if field.name == "flags" and not field.marker else field.name)

    def option_doc(self, field):
        return calls.operand_doc(field) if field.marker else re.sub(r"^sg_\w+_flags: ", "", field.doc)

    def windows(self, call):
        return self.place(call, next(f for f in call.desc.own if f.type == "sg_windows"))[0]

    def expression(self, call, dims):
        """A product of dimensions of a shape."""

        def symbol(name):
            if name in call.sizes:
                return f"size_{name}"
            if (of := self.of_matrix(call, name)) is not None:
                return self.side(self.place(call, of[0])[0], ("rows", "cols")[of[1]])
            if name in ("kernel_h", "kernel_w"):
                return self.side(self.windows(call), name)
            if name in ("out_h", "out_w"):
                long = {"h": "height", "w": "width"}[name[-1]]
                return f"{self.windows(call)}.{self.method('out_' + long)}(size_{long})"
            place = self.place(call, self.by_name(call, "cell" if name == "gates" else name))[0]
            return f"Shapes.{self.method('gates')}({place})" if name == "gates" else place

        products = (re.sub(r"[A-Za-z_][\w.]*", lambda m: symbol(m[0]), d).replace("*", " * ").replace("/", " / ") for d in dims)
        return " * ".join(products) if dims else "1"

    def multiple_checks(self, call):
        """Of a size whose comment says that it is a multiple of another one, or of an option."""
        forward = self.model.structs[f"sg_{call.owner}_desc"]
        for size, sources in call.sizes.items():
            by = re.search(r"a multiple of (\w+)", next((f.doc for f in forward.fields if f.name == size), ""))
            if not by:
                continue
            of = self.place(call, sources[0][0])[1]
            if by[1] in call.sizes:
                value, phrase = f"size_{by[1]}", f"{self.place(call, call.sizes[by[1]][0][0])[1]} has # {size}, which do not divide"
            else:
                value, name = self.place(call, self.by_name(call, by[1]))
                phrase = f"{name} is #, which does not divide"
            yield f'Shapes.{self.method("require_multiple")}(size_{size}, {value}, "{phrase}", "{of}");'

    def required_type(self, call, field):
        """The type that an operand must have."""
        named = field.marker.dtype
        if calls.fixed_type(field):
            return f"DType.{named.upper()}"
        if named:
            return {"wide": f"Shapes.{self.method('wide')}(type)", "gradient_dtype": "gradientType"}.get(named, self.any_type)
        if any(f.name == "dtype" for f in call.desc.own):
            return "type"
        of = next(filter(None, (self.of_matrix(call, s) for s in field.marker.shape)), None)
        return self.type_of_operand(self.place(call, of[0])[0]) if of else "type"

    def of_matrix(self, call, symbol):
        """The last required matrix that has a size, and in which dimension: a bias has the type of the result."""
        found = [(f, f.marker.shape.index(symbol)) for f in call.operands
                 if kind_of(f) == "matrix" and not f.marker.optional and not f.marker.op and symbol in f.marker.shape]
        return found[-1] if found else None

    def determined_by(self, call, sources):
        """The first operand that is given, of those that determine a size."""
        required = [source for source in sources if not source[0].marker.optional]
        found = ""
        for field, at in required[:1] or sources:
            place = self.place(call, field)[0]
            size = self.elements_of(place) if calls.has_elements(field) else self.dimension_of(place, kind_of(field), at)
            if required:
                return size
            found += f"{self.is_given(place)} ? {size} : "
        if self.needs_no_windows(call) and sources[0][0].marker.shape[sources[0][1]] in ("height", "width"):
            return found + self.side(self.place(call, self.with_windows(call))[0], sources[0][0].marker.shape[sources[0][1]])
        return found + "0"

    def elements_of(self, place):
        return f"{self.side(place, 'rows')} * {self.side(place, 'cols')}"

    def needs_no_windows(self, call):
        """Whether no operand may have the sizes of images: the gradient of a bias is the sum of all pixels, of any windows."""
        return any(f.type == "sg_windows" for f in call.desc.own) and all(f.marker.optional for f, _ in call.sizes["height"])

    def with_windows(self, call):
        return next(f for f in call.operands if "out_h" in f.marker.shape)

    def guard(self, call, field):
        """The condition under which an operand is read or written; None: always."""
        conditions = []
        if field.marker.optional:
            conditions.append(self.is_given(self.place(call, field)[0]))
        if field.marker.needed_for:
            conditions.append(self.is_given(self.place(call, self.by_name(call, field.marker.needed_for))[0]))
        return " && ".join(conditions)

    def presence_checks(self, call):
        if call.gradients:
            yield self.refuse_missing("gradients")
        if call.needs_options:
            yield self.refuse_missing("how")
        if call.by_hand is not None:
            arguments = ", ".join(self.place(call, a)[0] for a in [*call.arguments, *(self.by_name(call, n) for n in call.by_hand)])
            yield f"Shapes.{self.method('check_' + call.name)}({arguments});"
        for f in call.operands:
            at, name = self.place(call, f)
            if f.marker.needed_for and not f.marker.zeros:
                needing, its_name = self.place(call, self.by_name(call, f.marker.needed_for))
                yield f'Shapes.{self.method("require_for")}("{its_name}", {self.is_given(needing)}, "{name}", {self.is_given(at)});'
            elif not f.marker.optional and (call.place(f) == "options" or kind_of(f) == "flat"):
                yield f'Shapes.{self.method("require_for")}("the operation", true, "{name}", {self.is_given(at)});'

    def checks(self, call):
        """The statements before the call: sizes that follow from views, and what the library cannot see."""
        names = [f.name for f in call.desc.own]
        yield from self.presence_checks(call)
        yield from self.write_checks(call)
        views = [f for f in call.operands if call.is_sized(f)]
        images = [f for f in views if kind_of(f) == "images"]
        typed = [f for f in call.operands if not f.marker.optional and not f.marker.dtype and (kind_of(f) != "images" or "dtype" in names)]
        if "windows" in names:
            none = " && ".join(f"!({self.is_given(self.place(call, f)[0])})" for f, _ in call.sizes["height"])
            yield from self.checked_windows(call, none if self.needs_no_windows(call) else None)
        if "dtype" in names or views:
            yield f"DType type = {self.type_of_operand(self.place(call, typed[0])[0])};"
        if images:
            yield f"ImageLayout layout = {self.side(self.place(call, images[0])[0], 'layout')};"
        for symbol, sources in call.sizes.items():
            yield f"long size_{symbol} = {self.determined_by(call, sources)};"
        yield from self.multiple_checks(call)
        for f in views:
            at, name = self.place(call, f)
            sizes = ", ".join(self.expression(call, [d]) for d in f.marker.shape)
            more = ("layout, " if f in images else "", ", true" if f in images and "first_channel" in names else ", false" if f in images else "")
            type = self.required_type(call, f) if calls.fixed_type(f) else "type"
            statement = f'{at}.{self.method("require")}("{name}", {type}, {more[0]}{sizes}{more[1]});'
            yield f"if ({self.is_given(at)}) {statement}" if f.marker.optional else statement
        gradients = [self.place(call, f)[0] for f in call.operands if f.marker.dtype == "gradient_dtype"]
        if gradients:
            yield f"DType gradientType = {''.join(f'{self.is_given(g)} ? {self.type_of_operand(g)} : ' for g in gradients)}type;"
        for stride in sorted({f.marker.stride for f in call.operands if f.marker.stride}):
            yield f"long {stride} = 0;"
        for f in call.operands:
            yield from self.flat_check(call, f)
        for stride in sorted({f.marker.stride for f in call.operands if f.marker.stride}):
            yield f"long common_{stride} = {stride};"  # which no statement sets again

    def flat_check(self, call, field):
        at, name = self.place(call, field)
        shape = field.marker.shape
        if kind_of(field) == "indices":
            rows = self.expression(call, shape)
            yield f'{at}.{self.method("require")}("{name}", {rows}, "{rows}");'
        if kind_of(field) != "flat" or not shape:
            return
        if calls.has_elements(field):
            yield f'Shapes.{self.method("require_elements")}({at}, size_elements, {self.required_type(call, field)}, "{name}");'
            return
        rows, cols = (shape[:1], shape[1:]) if len(shape) > 1 else ([], shape)
        size = f'{self.expression(call, rows)}, {self.expression(call, cols)}, {self.required_type(call, field)}, "{name}"'
        if not field.marker.stride:
            yield f"Shapes.{self.method('require_contiguous')}({at}, {size});"
            return
        statement = f"{field.marker.stride} = Shapes.{self.method('require_rows')}({at}, {size}, {field.marker.stride});"
        condition = self.guard(call, field)
        yield f"if ({condition}) {statement}" if condition else statement

    def message_names(self):
        """For each operation, what a descriptor's fields are called in messages: as its method's caller gives them, or what they follow from."""
        found = {}
        for call in self.calls:
            names = found.setdefault(call.operation.name, {})
            for field in call.desc.own:
                name = self.message_name(call, field)
                if name:
                    names.setdefault(field.name, name)
        if "linear" in found:
            found["linear"].update((of, found["linear"][name]) for name, of in calls.LINEAR_AS_GEMM.items() if name in found["linear"])
        return found

    def message_name(self, call, field):
        images = [f for f in call.operands if kind_of(f) == "images"]
        strided = [f for f in call.operands if f.marker.stride == field.name]
        typed = [f for f in call.operands if f.marker.dtype == field.name]
        if call.place(field):
            return self.place(call, field)[1]
        if field.name in call.sizes:
            of, at = call.sizes[field.name][0]
            if calls.has_elements(of):
                return self.place(call, of)[1]
            return self.dimension_name(self.place(call, of)[1], kind_of(of), at)
        if field.name in ("dtype", "gradient_dtype") or typed:
            of = typed or [f for f in call.operands if not f.marker.optional]
            return self.component_name(self.place(call, of[0])[1], "dtype")
        if strided:
            return self.component_name(self.place(call, strided[0])[1], "ld")
        if field.type in calls.FOLLOWS_IMAGES or field.name in ("first_channel", "used_channels"):
            return self.component_name(self.place(call, images[0])[1], "layout" if field.type in calls.FOLLOWS_IMAGES else field.name)
        if field.type in calls.FOLLOWS_WINDOWS:
            windows = next(f for f in call.desc.own if f.type == "sg_windows")
            return self.component_name(self.place(call, windows)[1], "layout")
        return None

    def stores(self, call):
        """The statements that fill in the descriptor."""
        images = [f for f in call.operands if kind_of(f) == "images"]
        for f in call.desc.own:
            at = self.place(call, f)[0] if call.place(f) else None
            if f.name in call.fixed:
                yield self.store(f, self.constants[call.fixed[f.name]])
            elif f.marker and at:
                yield from self.store_operand(call, f, at)
                if f.marker.dtype not in (None, "wide", "gradient_dtype") and not calls.fixed_type(f):
                    value = self.side(at, "type") if kind_of(f) == "indices" else self.type_of_operand(at)
                    statement = self.store(self.by_name(call, f.marker.dtype), value)
                    yield f"if ({self.guard(call, f)}) {statement}" if f.marker.optional else statement
            elif f.name in call.sizes:
                yield self.store(f, f"size_{f.name}")
            elif f.name in ("dtype", "gradient_dtype"):
                yield self.store(f, "type" if f.name == "dtype" else "gradientType")
            elif any(o.marker.stride == f.name for o in call.operands):
                yield self.store(f, f"common_{f.name}")
            elif f.type in calls.FOLLOWS_IMAGES:
                yield self.store(f, "layout")
            elif f.type in calls.FOLLOWS_WINDOWS:
                yield self.store(f, self.side(self.windows(call), "layout"))
            elif f.type == "sg_windows":
                yield self.store_windows(f, self.windows(call))
            elif f.name in ("first_channel", "used_channels"):
                yield self.store(f, self.side(self.place(call, images[0])[0], f.name))
            elif at:
                of_class = next((o for o in self.options.get(call.owner, []) if o.name == f.name and call.place(f) == "options"), f)
                yield from self.store_option(of_class, f, at)


__all__ = ["Managed", "VIEWS", "camel", "pascal"]
