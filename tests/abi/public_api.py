# SPDX-License-Identifier: Apache-2.0
"""The declarations of the public headers, and the comment of each, as the model of bindings/api reads them; members of structs and
enums stand behind each."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/api"))
import model


def headers(folder):
    return sorted(pathlib.Path(folder).glob("*.h"))


def parse(text):
    """Everything that a header declares."""
    return list(model.flat(model.parse(text)))


def parse_folder(folder):
    return [item for path in headers(folder) for item in parse(path.read_text())]


def library_functions(folder):
    """The functions of libstreamgemm.so: those of blas.h are in libstreamgemm-blas.so."""
    return [item for item in parse_folder(folder) if item.kind == "function" and not item.name.startswith("sg_blas_")]


def exported_functions(folder):
    return {item.name for item in library_functions(folder) if item.exported}
