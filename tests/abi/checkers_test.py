#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checkers of this folder pass what is right and catch what is wrong."""
import pathlib
import sys
import unittest

import check_docs
import check_floors
import check_frozen
import check_headers
import check_names
import check_symbols
import public_api

GOOD = """
/** A thing. */
typedef struct sg_thing sg_thing;
/** Options. */
typedef struct sg_thing_options {
  size_t struct_size; /**< Size; set by the macro. */
  int32_t count;      /**< Number, or 0. */
} sg_thing_options;
/** Its initial value. */
#define SG_THING_OPTIONS_INIT {sizeof(sg_thing_options), 0}
/** Kinds. */
typedef enum sg_kind {
  SG_KIND_A = 0, /**< First, as ever. */
  SG_KIND_B = 1  /**< Second. */
} sg_kind;
/** Called back. */
typedef void (*sg_thing_callback)(sg_thing *thing, void *user);
/**
 * Makes one.
 * @param[out] out_thing One reference.
 * @return SG_STATUS_OK. Never blocks. Any
 * thread. Since 0.1.
 */
SG_API sg_status sg_thing_create(const sg_thing_options *options, sg_thing **out_thing);
"""


def docs(text):
    return list(check_docs.problems(public_api.parse(text)))


def floors(path, text):
    return list(check_floors.lib_problems([(pathlib.PurePosixPath(path), text)]))


class Docs(unittest.TestCase):
    def test_good(self):
        self.assertEqual([], docs(GOOD))
        kinds = [item.kind for item in public_api.parse(GOOD)]
        self.assertEqual(
            ["struct", "field", "field", "enum", "enumerator", "enumerator", "type", "type", "macro", "function"], kinds
        )

    def test_each_missing_comment_is_noticed(self):
        for comment, name in [
            ("/** A thing. */\n", "sg_thing"),
            ("/** Options. */\n", "sg_thing_options"),
            (" /**< Size; set by the macro. */", "struct_size"),
            ("      /**< Number, or 0. */", "count"),
            ("/** Its initial value. */\n", "SG_THING_OPTIONS_INIT"),
            ("/** Kinds. */\n", "sg_kind"),
            (" /**< First, as ever. */", "SG_KIND_A"),
            ("  /**< Second. */", "SG_KIND_B"),
            ("/** Called back. */\n", "sg_thing_callback"),
        ]:
            self.assertIn(comment, GOOD)
            found = docs(GOOD.replace(comment, "\n" if comment.endswith("\n") else ""))
            self.assertEqual(1, len(found), (name, found))
            self.assertIn(name, found[0])

    def test_each_missing_fact_is_noticed(self):
        facts = ("@return", "Never blocks. ", "Any\n * thread. ", "Since 0.1.", "@param[out] out_thing One reference.")
        for fact in facts:
            self.assertIn(fact, GOOD)
            self.assertEqual(1, len(docs(GOOD.replace(fact, ""))), fact)

    def test_an_undocumented_function(self):
        self.assertEqual(1, len(docs(GOOD + "SG_API sg_status sg_thing_use(sg_thing *thing);\n")))


class Symbols(unittest.TestCase):
    NM = "sg_a@@STREAMGEMM_0\nSTREAMGEMM_0\n"
    DYNAMIC = "(NEEDED) Shared library: [libc.so.6]\n(SONAME) Library soname: [libstreamgemm.so.0]\n"

    def symbols(self, text, declared):
        return list(check_symbols.symbol_problems(check_symbols.exported(text), declared))

    def test_good(self):
        self.assertEqual([], self.symbols(self.NM, {"sg_a": "STREAMGEMM_0"}))
        self.assertEqual([], self.symbols(self.NM + "sg_b@@STREAMGEMM_0.2\n",
                                          {"sg_a": "STREAMGEMM_0", "sg_b": "STREAMGEMM_0.2"}))
        self.assertEqual([], list(check_symbols.dynamic_problems(self.DYNAMIC)))

    def test_wrong(self):
        known = {"sg_a": "STREAMGEMM_0"}
        self.assertEqual(1, len(self.symbols(self.NM + "_ZN2sg5errorE\n", known)))
        self.assertEqual(1, len(self.symbols(self.NM + "sg_b@@STREAMGEMM_0\n", known)))
        self.assertEqual(1, len(self.symbols(self.NM, {**known, "sg_c": "STREAMGEMM_0.2"})))
        self.assertEqual(2, len(self.symbols(self.NM, {"sg_a": "STREAMGEMM_0.2"})))
        self.assertEqual(2, len(self.symbols("sg_a\n", known)))
        self.assertEqual(1, len(list(check_symbols.dynamic_problems(self.DYNAMIC + "(NEEDED) [libcublas.so.12]\n"))))
        self.assertEqual(1, len(list(check_symbols.dynamic_problems(self.DYNAMIC.replace("so.0", "so.1")))))


class Floors(unittest.TestCase):
    def test_good(self):
        for path, include in [
            ("plan/cost.cpp", '"base/dtype.hpp"'),
            ("run/job.cpp", '"backend/device.hpp"'),
            ("api/job.cpp", '"run/job.hpp"'),
            ("api/job.cpp", "<streamgemm/queue.h>"),
            ("backend/registry.cpp", '"backends/cpu/cpu_backend.hpp"'),
            ("backends/cpu/gemm.cpp", "<streamgemm/backend.h>"),
            ("backends/cpu/gemm.cpp", '"gemm.hpp"'),
            ("base/error.hpp", "<streamgemm/status.h>"),
        ]:
            self.assertEqual([], floors(path, f"#include {include}\n"), (path, include))

    def test_upwards(self):
        for path, include in [
            ("base/error.cpp", '"plan/problem.hpp"'),
            ("plan/cost.cpp", '"backend/device.hpp"'),
            ("backend/device.cpp", '"run/job.hpp"'),
            ("run/job.cpp", '"api/entry.hpp"'),
            ("run/job.cpp", '"backends/cpu/cpu_backend.hpp"'),
            ("backend/registry.cpp", '"backends/cpu/gemm.hpp"'),
            ("backends/cpu/gemm.cpp", '"base/error.hpp"'),
            ("backends/cpu/gemm.cpp", '"backends/sim/models.hpp"'),
            ("backends/cpu/gemm.cpp", "<streamgemm/job.h>"),
            ("plan/cost.cpp", "<streamgemm/job.h>"),
            ("base/error.cpp", "<streamgemm/backend.h>"),
            ("run/job.cpp", '"../api/entry.hpp"'),
        ]:
            self.assertTrue(floors(path, f"#include {include}\n"), (path, include))
        self.assertTrue(floors("attic/x.cpp", ""))

    def test_outside(self):
        def outside(path, text):
            return list(check_floors.outside_problems([(pathlib.PurePosixPath(path), text)]))

        self.assertEqual([], outside("tools/streamgemm/bench/cpu.cpp", '#include "../library.hpp"\n'))
        self.assertTrue(outside("tools/streamgemm/main.cpp", '#include "base/dtype.hpp"\n'))
        self.assertTrue(outside("tools/streamgemm/main.cpp", '#include "../../lib/base/dtype.hpp"\n'))
        self.assertTrue(outside("examples/01.c", "#include <streamgemm/backend.h>\n"))


class Headers(unittest.TestCase):
    def test_a_header_that_leans_on_another(self):
        include, compiler, language = sys.argv[1], sys.argv[2:], "c"
        good = check_headers.program("types.h", [])
        self.assertEqual("", check_headers.compile_alone(compiler, language, include, good))
        for spoilt in ("sg_job_callback x;\n", "int f(void) { return 1 }\n", "#error no\n"):
            self.assertTrue(check_headers.compile_alone(compiler, language, include, good + spoilt))


class Names(unittest.TestCase):
    PAGE = "| create | makes one | `sg_thing_create` |\n\nFormer names: `sg_thing_make`.\n"
    FORMER = "/** @deprecated Use another. Since 0.1. */\nSG_API sg_status sg_thing_make(void);\n"

    def problems(self, page, text):
        return list(check_names.problems(page, public_api.parse(text)))

    def test_good(self):
        self.assertEqual([], self.problems(self.PAGE, GOOD + self.FORMER))

    def test_wrong(self):
        for page, text in [
            (self.PAGE.replace("sg_thing_create", "sg_thing_open"), GOOD + self.FORMER),
            (self.PAGE.replace("`sg_thing_create`", "`sg_thing_create`, `sg_thing_create`"), GOOD + self.FORMER),
            (self.PAGE.replace("`sg_thing_create`", "`sg_thing_create`, `sg_thing_make`"), GOOD + self.FORMER),
            (self.PAGE.replace("`sg_thing_make`", "none"), GOOD + self.FORMER),
            (self.PAGE, GOOD + self.FORMER + "SG_API sg_status sg_thing_use(void);\n"),
        ]:
            self.assertTrue(self.problems(page, text), (page, text))


class Frozen(unittest.TestCase):
    def problems(self, today):
        return list(check_frozen.problems(public_api.parse(GOOD), public_api.parse(today)))

    def test_additions_are_welcome(self):
        today = GOOD.replace("  int32_t count; ", "  int32_t count; /**< . */\n  int32_t more; ")
        today = today.replace("SG_KIND_B = 1 ", "SG_KIND_B = 1, /**< . */\n  SG_KIND_C = 2 ")
        self.assertEqual([], self.problems(today))

    def test_changes_are_not(self):
        for old, new in [
            ("SG_KIND_A = 0", "SG_KIND_A = 7"),
            ("SG_KIND_B = 1 ", "SG_KIND_D = 1 "),
            ("int32_t count", "int64_t count"),
            ("  size_t struct_size;", "  int32_t first; /**< . */\n  size_t struct_size;"),
            ("const sg_thing_options *options", "sg_thing_options *options"),
            ("sg_thing_create", "sg_thing_make"),
        ]:
            self.assertIn(old, GOOD)
            self.assertTrue(self.problems(GOOD.replace(old, new)), old)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
