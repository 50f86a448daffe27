#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in C, drawn from the model of the headers: each field of each descriptor gets a value that it cannot have. A call that is
refused names the field as C does, the value and the rule, and the names of arguments, nothing else, are marked for wrappers.

usage: mistakes_test.py LIBRARY HEADER...
"""
import ctypes
import pathlib
import re
import resource
import signal
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from model import Model  # noqa: E402

CODES = {"int32_t": "i", "uint32_t": "I", "int64_t": "q", "uint64_t": "Q", "size_t": "Q", "double": "d"}
RULE = re.compile(r"which|must|; |is given|needs|NaN|negative|overflow|fit|overlap|is NULL|has no|agree")
SENSELESS = ("struct_size", "compute_units", "mask_offset", "first_position")  # any number is allowed, or checked by size


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        library, *headers = sys.argv[1:]
        cls.library = ctypes.CDLL(library)
        cls.library.sg_last_error_message.restype = cls.library.sg_last_error_marked.restype = ctypes.c_char_p
        cls.model = Model(map(pathlib.Path, headers))
        cls.numbers = {v.name: int(v.value, 0) for e in cls.model.enums.values() for v in e.values}
        cls.context = ctypes.c_void_p()
        options = bytearray(cls.model.structs["sg_context_options"].size)
        cls.fill(cls.model.structs["sg_context_options"], options, 0)
        cls.device = ctypes.c_char_p(b"cpu")
        struct.pack_into("Q", options, cls.model.structs["sg_context_options"]["device"].offset, ctypes.cast(cls.device, ctypes.c_void_p).value)
        given = (ctypes.c_char * len(options)).from_buffer(options)
        assert cls.library.sg_context_create(given, ctypes.byref(cls.context)) == 0

    @classmethod
    def code(cls, field):
        return "Q" if field.pointer or field.type not in CODES and field.type not in cls.model.enums else CODES.get(field.type, "i")

    @classmethod
    def fill(cls, of, to, at, values=None):
        """Writes a struct's initial value."""
        for field, value in zip(of.fields, values or [f.init for f in of.fields]):
            if isinstance(value, list):
                cls.fill(cls.model.structs[field.type], to, at + field.offset, value)
            elif field.name == "struct_size":
                struct.pack_into("Q", to, at + field.offset, of.size)
            elif value is not None:
                text = re.sub(r"^\(\w+\)", "", value)
                if field.type in cls.model.enums and text not in cls.numbers:
                    text = "SG_DTYPE_F32" if field.type == "sg_dtype" else cls.model.enums[field.type].values[0].name  # it has no default
                number = 0 if text == "NULL" else cls.numbers[text] if text in cls.numbers else float(text) if cls.code(field) == "d" else int(text, 0)
                struct.pack_into(cls.code(field), to, at + field.offset, number)

    def scalars(self, of, path="", at=0):
        """Each number of a struct and of the structs in it: its path, field and offset."""
        for field in of.fields:
            if field.type in self.model.structs and not field.pointer:
                yield from self.scalars(self.model.structs[field.type], f"{path}{field.name}.", at + field.offset)
            elif not field.pointer and not field.array and field.name not in SENSELESS and field.type not in self.model.callbacks:
                yield path + field.name, field, at + field.offset

    def wrong(self, field):
        """A value that the field cannot have, and its texts."""
        if field.type in self.model.enums:
            return 77, ("77",)
        if field.type == "double":
            return float("nan"), ("nan", "NaN")
        if field.type.startswith("u"):
            value = 1 << 31 if field.type == "uint32_t" else (1 << 64) - 5
            return value, (str(value), hex(value))
        return -5, ("-5",)

    def refused(self, operation, path, field, offset):
        """The message of a call with a wrong value; None: the library takes it."""
        desc = bytearray(operation.desc.size)
        self.fill(operation.desc, desc, 0)
        value, texts = self.wrong(field)
        struct.pack_into(self.code(field), desc, offset, value)
        job = ctypes.c_void_p()
        given = (ctypes.c_char * len(desc)).from_buffer(desc)
        if getattr(self.library, f"sg_{operation.name}_async")(self.context, given, None, ctypes.byref(job)) == 0:
            self.library.sg_job_wait(job, ctypes.c_int64(-1), None)
            self.library.sg_job_release(job)
            return None
        return self.library.sg_last_error_message().decode(), self.library.sg_last_error_marked().decode(), texts

    def test_each_field_of_each_descriptor(self):
        seen = 0
        for operation in (o for o in self.model.operations if o.name != "custom"):  # which needs a function
            for path, field, offset in self.scalars(operation.desc):
                found = self.refused(operation, path, field, offset)
                if found is None:
                    continue
                message, marked, texts = found
                seen += 1
                with self.subTest(operation=operation.name, field=path, message=message):
                    # A size of an operand may be refused as the operand's shape.
                    names = [path, path.rpartition(".")[0]] if path.rpartition(".")[2] in ("rows", "cols", "re", "im") else [path]
                    self.assertTrue(any(re.search(rf"\bdesc->{re.escape(name)}\b", message) for name in names if name), "the name")
                    self.assertTrue(any(text in message for text in texts), "the value")
                    self.assertRegex(message, RULE)
                    self.assertEqual(marked.replace("\x01", ""), message)
                    self.assertEqual(re.sub(r"(desc->|NULL)", "\x01\\1", message), marked)
        self.assertGreater(seen, 150)

    def test_reserved_fields(self):
        """Also those of the structs in a descriptor, before any other mistake in it."""
        seen = 0
        for operation in self.model.operations:
            for path, field, offset in self.scalars(operation.desc):
                if field.name == "reserved":
                    seen += 1
                    with self.subTest(operation=operation.name, field=path):
                        value, _ = self.wrong(field)
                        message, _, _ = self.refused(operation, path, field, offset)
                        self.assertEqual(message, f"desc->{path} is {value}; it must be 0")
        self.assertGreater(seen, 100)

    def test_values_are_not_marked(self):
        for path in ("/no/such/folder/desc->a_array/src.json", "/no/such/\x01dst/x.json", "/no/such/place", "memory/src/dst.json"):
            self.assertLess(self.library.sg_trace_check_path(path.encode(), 0), 0)
            message, marked = self.library.sg_last_error_message().decode(), self.library.sg_last_error_marked().decode()
            self.assertIn(path, message)
            self.assertEqual(marked, "\x01" + message.replace("\x01", "?"))

    def test_a_full_disk_is_no_wrong_argument(self):
        trace = ctypes.c_void_p()
        self.assertEqual(self.library.sg_trace_start(None, ctypes.byref(trace)), 0)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/trace.json".encode()
            self.assertEqual(self.library.sg_trace_check_path(path, 0), 0)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])  # it leaves no file
            before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
            try:
                status = self.library.sg_trace_write(trace, path, 0)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
                signal.signal(signal.SIGXFSZ, handler)
        self.library.sg_trace_release(trace)
        self.assertEqual(status, self.numbers["SG_STATUS_IO_FAILURE"])
        self.assertIn("could not be written: File too large", self.library.sg_last_error_message().decode())

    def test_handles(self):
        job = ctypes.c_void_p()
        self.assertLess(self.library.sg_linear_async(None, None, None, ctypes.byref(job)), 0)
        self.assertEqual(self.library.sg_last_error_message(), b"context is NULL; it must be the handle of a context")
        self.assertLess(self.library.sg_stream_synchronize(self.context), 0)
        self.assertRegex(self.library.sg_last_error_message().decode(), r"^stream is 0x\w+, which is no handle of a stream \(it was released")

    def test_no_memory_is_said_once(self):
        device, context, buffer = ctypes.c_char_p(b"sim:h200"), ctypes.c_void_p(), ctypes.c_void_p()
        of = self.model.structs["sg_context_options"]
        options = bytearray(of.size)
        self.fill(of, options, 0)
        struct.pack_into("Q", options, of["device"].offset, ctypes.cast(device, ctypes.c_void_p).value)
        self.assertEqual(self.library.sg_context_create((ctypes.c_char * len(options)).from_buffer(options), ctypes.byref(context)), 0)
        self.assertLess(self.library.sg_buffer_create(context, ctypes.c_uint64(1 << 50), None, ctypes.byref(buffer)), 0)
        message = self.library.sg_last_error_message().decode()
        self.library.sg_context_release(context)
        self.assertEqual(message.count(str(1 << 50)), 1, message)
        self.assertEqual(message.count("free"), 1, message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
