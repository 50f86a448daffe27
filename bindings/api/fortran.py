#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the module `streamgemm` for Fortran, from the public headers: a program compiles it with its own files.
fortran.py OUTPUT HEADER...

Handles and addresses of data are type(c_ptr). A descriptor is a derived type whose components have the values of its SG_..._INIT.
Arguments that C may leave out with NULL are optional. All names are those of C."""
import pathlib
import re
import sys

import model

HEAD = """! SPDX-License-Identifier: Apache-2.0
! The interface of StreamGEMM for Fortran 2018, made from the C headers, whose comments are its documentation
! (streamgemm/*.h). Compile this file with the program, and link with -lstreamgemm:
!
!   gfortran streamgemm.f03 program.f90 -lstreamgemm
!
! Derived types have the initial values of C's SG_..._INIT. Handles and addresses of data are of type(c_ptr): c_loc(a) of an
! array with the attribute target, which has to exist until the job has completed. Text ends with c_null_char.
! Arrays of Fortran are column major: SG_LAYOUT_COLUMN_MAJOR.
module streamgemm
  use, intrinsic :: iso_c_binding
  implicit none
"""
KINDS = {"int32_t": "integer(c_int32_t)", "uint32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)",
         "size_t": "integer(c_size_t)", "float": "real(c_float)", "double": "real(c_double)", "char": "character(kind=c_char)"}
SUFFIX = {"integer(c_int32_t)": "_c_int32_t", "integer(c_int64_t)": "_c_int64_t", "integer(c_size_t)": "_c_size_t",
          "integer(c_int)": "_c_int", "real(c_float)": "_c_float", "real(c_double)": "_c_double"}
WIDTH = 120


def folded(line):
    """The line of at most WIDTH characters, continued where it has commas."""
    indent = re.match(r" *", line)[0]
    lines = []
    while len(line) > WIDTH:
        at = line.rfind(", ", 0, WIDTH - 1) + 2
        if at < len(indent) + 4:
            raise ValueError(f"cannot be folded: {line}")
        lines.append(line[:at].rstrip() + " &")
        line = indent + "    " + line[at:]
    return [*lines, line]


class Fortran:
    def __init__(self, public):
        self.public = public
        self.lines = []

    def add(self, line=""):
        self.lines += folded(line)

    # A value of C, as the initial value of a component of that kind.
    def value(self, text, kind):
        if isinstance(text, list):
            raise TypeError(f"{text} initialises a struct")
        size = re.fullmatch(r"sizeof\((\w+)\)", text)
        zero = re.fullmatch(r"\(\w+\)0", text)
        text = str(self.public.structs[size[1]].size) if size else "0" if zero else text
        if text.startswith("SG_"):
            return text
        if kind.startswith("real") and not re.search(r"[.e]", text):
            text += ".0"
        return text + SUFFIX[kind]

    def kind(self, name):
        return "integer(c_int)" if name in self.public.enums else KINDS[name]

    def constants(self):
        self.add()
        for enum in self.public.enums.values():
            self.add(f"  ! {enum.name}")
            for value in enum.values:
                self.add(f"  integer(c_int), parameter :: {value.name} = {value.value}_c_int")
        for name, macro in self.public.macros.items():
            number = re.fullmatch(r"\(?(-?\d+)\)?|INT64_C\((-?\d+)\)", macro.text)
            if number:
                kind = "integer(c_int64_t)" if number[2] else "integer(c_int)"
                self.add(f"  {kind}, parameter :: {name} = {number[1] or number[2]}{SUFFIX[kind]}")

    def component(self, struct, field):
        if field.type in self.public.callbacks:
            return f"type(c_funptr) :: {field.name} = c_null_funptr"
        if field.pointer:
            return f"type(c_ptr) :: {field.name} = c_null_ptr"
        shape = f"({self.public.constant(field.array)})" if field.array else ""
        if field.type in self.public.structs:
            inner = self.public.structs[field.type]
            own = [each.init for each in inner.fields]
            if field.init is None or field.init == own or field.array:
                return f"type({field.type}) :: {field.name}{shape}"
            return f"type({field.type}) :: {field.name} = {self.constructed(inner, field.init)}"
        kind = self.kind(field.type)
        if field.type == "char":
            return f"{kind} :: {field.name}{shape} = c_null_char"
        if field.name == "struct_size":
            return f"{kind} :: struct_size = {struct.size}{SUFFIX[kind]}"
        initial = field.init if isinstance(field.init, str) else "0"
        return f"{kind} :: {field.name}{shape} = {self.value(initial, kind)}"

    def constructed(self, struct, values):
        """A value of a struct within another, whose initial value there is not that of the struct alone."""
        each = (self.initial(field, value) for field, value in zip(struct.fields, values))
        return f"{struct.name}({', '.join(each)})"

    def initial(self, field, value):
        if field.type in self.public.callbacks:
            return "c_null_funptr"
        if field.pointer:
            return "c_null_ptr"
        if field.type in self.public.structs:
            return self.constructed(self.public.structs[field.type], value)
        return self.value(value, self.kind(field.type))

    def types(self):
        done = set()

        def visit(struct):
            for field in struct.fields:
                if field.type in self.public.structs and not field.pointer and field.type not in done:
                    visit(self.public.structs[field.type])
            if struct.name in done:
                return
            done.add(struct.name)
            self.add()
            self.add(f"  type, bind(c) :: {struct.name}")
            for field in struct.fields:
                self.add(f"    {self.component(struct, field)}")
            self.add(f"  end type {struct.name}")

        for struct in self.public.structs.values():
            visit(struct)

    def argument(self, function, text):
        """The declaration of a parameter."""
        name = model.declarator(text)
        kind = re.sub(rf"\b{name}$", "", text).strip()
        plain = kind.replace("const", "").replace("*", "").strip()
        stars, is_const = kind.count("*"), kind.startswith("const")
        if kind in self.public.callbacks:
            return name, f"type(c_funptr), value :: {name}"
        if stars == 0:
            return name, f"{self.kind(kind)}, value :: {name}"
        if kind.endswith("*const *"):
            return name, f"type(c_ptr), intent(in) :: {name}(*)"
        if stars == 2:
            behind = function.parameters[function.parameters.index(text) + 1:]
            shape = "(*)" if any("**" in p for p in behind) else ""  # an array of handles beside the one of all
            return name, f"type(c_ptr), intent(out), optional :: {name}{shape}"
        if plain == "char":
            return name, f"character(kind=c_char), {'intent(in)' if is_const else 'intent(inout)'}, optional :: {name}(*)"
        if plain in self.public.structs:
            behind = [model.declarator(p) for p in function.parameters[function.parameters.index(text) + 1:]]
            shape = "(*)" if behind[:1] == ["count"] or "capacity" in behind else ""
            return name, f"type({plain}), {'intent(in)' if is_const else 'intent(inout)'}, optional :: {name}{shape}"
        if name.startswith("out_") and plain not in ("void",):
            return name, f"{self.kind(plain)}, intent(out), optional :: {name}"
        return name, f"type(c_ptr), value :: {name}"  # a handle, or the address of data

    def function(self, function):
        parameters = [p for p in function.parameters if p != "void"]
        declared = [self.argument(function, p) for p in parameters]
        names = ", ".join(name for name, _ in declared)
        result = re.match(r"(?:SG_API )?(.*?)\b" + function.name, function.text)[1].strip()
        kind = "type(c_ptr)" if "*" in result else None if result == "void" else self.kind(result)
        what = "function" if kind else "subroutine"
        self.add()
        self.add(f"    {what} {function.name}({names}) bind(c, name='{function.name}')" + (" result(returned)" if kind else ""))
        self.add("      import")
        for _, line in declared:
            self.add(f"      {line}")
        if kind:
            self.add(f"      {kind} :: returned")
        self.add(f"    end {what} {function.name}")

    def text(self):
        self.constants()
        self.types()
        self.add()
        self.add("  interface")
        for function in self.public.functions.values():
            if function.exported:
                self.function(function)
        self.add("  end interface")
        return HEAD + "\n".join(self.lines) + "\nend module streamgemm\n"


def main():
    output, *headers = sys.argv[1:]
    public = model.Model([h for h in headers if pathlib.Path(h).name != "blas.h"])
    pathlib.Path(output).write_text(Fortran(public).text())


if __name__ == "__main__":
    main()
