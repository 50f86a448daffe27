#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checkers of this folder accept valid input and report each defect."""
import pathlib
import shutil
import sys
import tempfile
import unittest

import abi_dump
import check_abi
import check_docs
import check_headers
import check_layers
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
 * thread.
 */
SG_API sg_status sg_thing_create(const sg_thing_options *options, sg_thing **out_thing);
"""


def docs(text):
    return list(check_docs.problems(public_api.parse(text)))


def layers(path, text):
    return list(check_layers.lib_problems([(pathlib.PurePosixPath(path), text)]))


class Docs(unittest.TestCase):
    def test_good(self):
        self.assertEqual([], docs(GOOD))
        kinds = [item.kind for item in public_api.parse(GOOD)]
        self.assertEqual(
            ["type", "struct", "field", "field", "macro", "enum", "enumerator", "enumerator", "type", "function"], kinds
        )

    def test_each_missing_comment_is_reported(self):
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

    def test_each_missing_statement_is_reported(self):
        statements = ("@return", "Never blocks. ", "Any\n * thread.", "@param[out] out_thing One reference.")
        for statement in statements:
            self.assertIn(statement, GOOD)
            self.assertEqual(1, len(docs(GOOD.replace(statement, ""))), statement)

    def test_an_undocumented_function(self):
        self.assertEqual(1, len(docs(GOOD + "SG_API sg_status sg_thing_use(sg_thing *thing);\n")))

    def test_what_is_newer_says_since(self):
        def found(text, *releases):
            releases = [(version, public_api.parse(old)) for version, old in releases]
            return list(check_docs.since_problems(public_api.parse(text), releases, (0, 10)))

        first, note = ((0, 9), GOOD), "Any\n * thread."
        for old, new in [("  int32_t count; ", "  int32_t more; /**< More.{} */\n  int32_t count; "),
                         ("SG_KIND_B = 1 ", "SG_KIND_C = 2, /**< Third.{} */\n  SG_KIND_B = 1 "),
                         (note, note + "{} */\nSG_API sg_status sg_thing_use(void);\n/** Makes one."),
                         ("/** Kinds. */", "/** Pairs.{} */\ntypedef struct sg_pair {{\n  int x; /**< . */\n}} sg_pair;\n/** Kinds. */"),
                         ("/** Kinds. */", "/** A limit.{} */\n#define SG_LIMIT 3\n/** Kinds. */")]:
            self.assertIn(old, GOOD)
            plain, right, wrong = (GOOD.replace(old, new.format(said)) for said in ("", " Since 0.10.", " Since 0.9."))
            self.assertEqual([], found(plain), new)  # of the first release
            self.assertEqual([], found(right, first), new)
            self.assertEqual([], found(right, first, ((0, 10), right)), new)
            for text, releases in ((right, ()), (plain, (first,)), (wrong, (first,)), (right, (first, ((0, 9), right)))):
                self.assertEqual(1, len(found(text, *releases)), (new, releases))


class Symbols(unittest.TestCase):
    NM = "sg_a@@STREAMGEMM_1\nSTREAMGEMM_1\n"
    DYNAMIC = "(NEEDED) Shared library: [libc.so.6]\n(SONAME) Library soname: [libstreamgemm.so.1]\n"

    def symbols(self, text, declared):
        return list(check_symbols.symbol_problems(check_symbols.exported(text), declared))

    def test_good(self):
        self.assertEqual([], self.symbols(self.NM, {"sg_a": "STREAMGEMM_1"}))
        self.assertEqual([], self.symbols(self.NM + "sg_b@@STREAMGEMM_0.10\n",
                                          {"sg_a": "STREAMGEMM_1", "sg_b": "STREAMGEMM_0.10"}))
        self.assertEqual([], list(check_symbols.dynamic_problems(self.DYNAMIC, "1")))

    def test_wrong(self):
        known = {"sg_a": "STREAMGEMM_1"}
        self.assertEqual(1, len(self.symbols(self.NM + "_ZN2sg5errorE\n", known)))
        self.assertEqual(1, len(self.symbols(self.NM + "sg_b@@STREAMGEMM_1\n", known)))
        self.assertEqual(1, len(self.symbols(self.NM, {**known, "sg_c": "STREAMGEMM_0.10"})))
        self.assertEqual(3, len(self.symbols(self.NM, {"sg_a": "STREAMGEMM_0.10"})))
        self.assertEqual(2, len(self.symbols("sg_a\n", known)))
        own = "00000000002ef6b8  0000015d00000006 R_X86_64_GLOB_DAT      000000000005776b sg_softmax_async@@STREAMGEMM_0.10 + 0\n"
        foreign = own.replace("sg_softmax_async@@STREAMGEMM_0.10", "memcpy@GLIBC_2.14")
        self.assertEqual(1, len(list(check_symbols.dynamic_problems(self.DYNAMIC, "1", foreign + own))))
        self.assertEqual([], list(check_symbols.dynamic_problems(self.DYNAMIC, "1", foreign)))
        for foreign in ("libcuda.so.1", "libdnnl.so.2", "libopenblas.so.0"):
            self.assertEqual(1, len(list(check_symbols.dynamic_problems(self.DYNAMIC + f"(NEEDED) [{foreign}]\n", "1"))), foreign)
        self.assertEqual(1, len(list(check_symbols.dynamic_problems(self.DYNAMIC, "2"))))

    def test_the_node_of_a_function(self):
        text = GOOD + "/** Uses one. Never blocks. Any thread. Since 0.10. */\nSG_API void sg_thing_use(void);\n"
        functions = [item for item in public_api.parse(text) if item.kind == "function"]
        self.assertEqual(["STREAMGEMM_1", "STREAMGEMM_0.10"], [abi_dump.node_of(item, "1") for item in functions])


class Layers(unittest.TestCase):
    def test_good(self):
        for path, include in [
            ("plan/gemm/resident/cost.cpp", '"base/dtype.hpp"'),
            ("run/job/job.cpp", '"devices/device.hpp"'),
            ("api/job.cpp", '"run/job/job.hpp"'),
            ("api/job.cpp", "<streamgemm/queue.h>"),
            ("devices/registry.cpp", '"backends/cpu/cpu_backend.hpp"'),
            ("backends/cpu/gemm/gemm.cpp", "<streamgemm/backend.h>"),
            ("backends/cpu/gemm/gemm.cpp", '"gemm.hpp"'),
            ("backends/cpu/gemm/gemm.cpp", '"backends/common/types.hpp"'),
            ("base/error.hpp", "<streamgemm/status.h>"),
            ("blas/device.c", "<streamgemm/streamgemm.h>"),
            ("blas/device.c", '"device.h"'),
        ]:
            self.assertEqual([], layers(path, f"#include {include}\n"), (path, include))

    def test_upwards(self):
        for path, include in [
            ("base/error.cpp", '"plan/gemm/resident/problem.hpp"'),
            ("blas/device.c", '"base/error.hpp"'),
            ("blas/device.c", "<streamgemm/backend.h>"),
            ("api/job.cpp", '"blas/device.h"'),
            ("plan/gemm/resident/cost.cpp", '"devices/device.hpp"'),
            ("devices/device.cpp", '"run/job/job.hpp"'),
            ("run/job/job.cpp", '"api/entry.hpp"'),
            ("run/job/job.cpp", '"backends/cpu/cpu_backend.hpp"'),
            ("devices/registry.cpp", '"backends/cpu/gemm/gemm.hpp"'),
            ("backends/cpu/gemm/gemm.cpp", '"base/error.hpp"'),
            ("backends/cpu/gemm/gemm.cpp", '"backends/sim/models.hpp"'),
            ("backends/cpu/gemm/gemm.cpp", "<streamgemm/job.h>"),
            ("backends/common/types.hpp", '"base/dtype.hpp"'),
            ("backends/common/types.hpp", '"backends/cpu/simd/simd.hpp"'),
            ("devices/registry.cpp", '"backends/common/types.hpp"'),
            ("plan/gemm/resident/cost.cpp", "<streamgemm/job.h>"),
            ("base/error.cpp", "<streamgemm/backend.h>"),
            ("run/job/job.cpp", '"../api/entry.hpp"'),
            ("run/job/job.cpp", '"run/context.hpp"'),
            ("run/order/tracker.cpp", '"run/dispatch/engine.hpp"'),
            ("plan/schedule/hazard.cpp", '"plan/gemm/resident/problem.hpp"'),
        ]:
            self.assertTrue(layers(path, f"#include {include}\n"), (path, include))
        self.assertTrue(layers("attic/x.cpp", ""))
        self.assertTrue(layers("backends/cuda/kernels/x.cu", "namespace sg {\nnamespace {\n"))
        self.assertEqual([], layers("backends/cuda/kernels/x.cu", "namespace sg {\ninline namespace x_cu {\n"))
        self.assertEqual([], layers("backends/cuda/x.cpp", "namespace {\n"))

    def test_cycles_frequent_includes_and_long_files(self):
        def files(**texts):
            return [(pathlib.PurePosixPath(name.replace("_", "/") + ".hpp"), text) for name, text in texts.items()]

        a_b, b_a = '#include "base/b.hpp"\n', '#include "a.hpp"\n'
        self.assertEqual([], list(check_layers.cycles(files(base_a=a_b, base_b=""))))
        self.assertEqual(
            ["base/a.hpp -> base/b.hpp -> base/a.hpp"], list(check_layers.cycles(files(base_a=a_b, base_b=b_a)))
        )
        knowing = {f"api_x{i}": '#include "run/context.hpp"\n' for i in range(9)}
        self.assertEqual(1, len(list(check_layers.included_too_often(files(**knowing)))))
        del knowing["api_x0"]
        self.assertEqual([], list(check_layers.included_too_often(files(**knowing))))
        self.assertEqual([], list(check_layers.too_long(files(run_x="\n" * 350))))
        self.assertEqual(1, len(list(check_layers.too_long(files(run_x="\n" * 351)))))
        pair = [(pathlib.PurePosixPath(f"run/x.{end}"), "\n" * 251) for end in ("hpp", "cpp")]
        self.assertEqual(1, len(list(check_layers.too_long(pair))))

    def test_cycles_of_folders(self):
        def cycles(**texts):
            files = [(pathlib.PurePosixPath(name.replace("__", "/")), text) for name, text in texts.items()]
            files = [(path.with_suffix(".hpp"), "".join(f'#include "{x}"\n' for x in text.split())) for path, text in files]
            return list(check_layers.room_cycles(files))

        planted = {"run__job__a": "run/order/a.hpp", "run__order__a": "", "run__order__b": "run/job/b.hpp", "run__job__b": ""}
        self.assertEqual(1, len(cycles(**planted)))  # of folders, not of files
        self.assertIn("run/order/b.hpp includes run/job/b.hpp", cycles(**planted)[0])
        self.assertEqual([], cycles(**{**planted, "run__order__b": ""}))
        # A folder and its sub-folder; three folders; folders of two backends; layers, which have a rule of their own.
        self.assertEqual(1, len(cycles(api__a="api/x/a.hpp", api__x__a="", api__x__b="api/b.hpp", api__b="")))
        self.assertEqual([], cycles(api__a="api/x/a.hpp", api__x__a="", api__b="a.hpp"))
        self.assertEqual(1, len(cycles(backends__cpu__x__a="backends/cpu/y/a.hpp", backends__cpu__y__a="", backends__cpu__z__a="",
                                        backends__cpu__y__b="backends/cpu/z/a.hpp", backends__cpu__x__b="",
                                        backends__cpu__z__b="backends/cpu/x/b.hpp")))
        self.assertEqual([], cycles(base__a="ops/a.hpp", ops__a="", ops__b="base/b.hpp", base__b=""))

    def test_descriptors_of_gemms(self):
        def elsewhere(path, text):
            return list(check_layers.descriptors_elsewhere([(pathlib.PurePosixPath(path), text)]))

        header = '#include "plan/gemm/resident/problem.hpp"\n'
        for path in ("run/context.hpp", "trace/advice.cpp", "api/operations/conv.cpp", "ops/axpby.cpp", "plan/layers/conv.hpp"):
            self.assertEqual(1, len(elsewhere(path, header)), path)
            self.assertEqual([], elsewhere(path, ""))
        self.assertEqual(1, len(elsewhere("api/objects/graph.cpp", '#include "api/gemm/problem_of.hpp"\n')))
        for path in ("api/gemm/gemm.cpp", "api/operations/linear.cpp", "plan/gemm/resident/cost.hpp", "plan/layers/linear_stream.cpp"):
            self.assertEqual([], elsewhere(path, header), path)

    def test_outside(self):
        def outside(path, text):
            return list(check_layers.outside_problems([(pathlib.PurePosixPath(path), text)]))

        self.assertEqual([], outside("tools/streamgemm/bench/cpu.cpp", '#include "../library.hpp"\n'))
        self.assertTrue(outside("tools/streamgemm/main.cpp", '#include "base/dtype.hpp"\n'))
        self.assertTrue(outside("tools/streamgemm/main.cpp", '#include "../../lib/base/dtype.hpp"\n'))
        self.assertTrue(outside("examples/01.c", "#include <streamgemm/backend.h>\n"))


class Headers(unittest.TestCase):
    def test_a_header_that_needs_another(self):
        include, compiler, language = sys.argv[1], sys.argv[2:], "c"
        good = check_headers.program("types.h", [])
        self.assertEqual("", check_headers.compile_alone(compiler, language, include, good))
        for spoilt in ("sg_job_callback x;\n", "int f(void) { return 1 }\n", "#error no\n"):
            self.assertTrue(check_headers.compile_alone(compiler, language, include, good + spoilt))


class Names(unittest.TestCase):
    PAGE = "| create | makes one | `sg_thing_create` |\n\nFormer names: `sg_thing_make`.\n"
    FORMER = "/** @deprecated Use another. */\nSG_API sg_status sg_thing_make(void);\n"

    def problems(self, page, text):
        return list(check_names.problems(page, public_api.parse(text)))

    def test_good(self):
        self.assertEqual([], self.problems(self.PAGE, GOOD + self.FORMER))

    def test_operations_are_in_it_by_rule(self):
        functions = "SG_API sg_status sg_turn_async(void);\nSG_API sg_status sg_turn(void);\n"
        descriptor = "typedef struct sg_turn_desc {\n  size_t struct_size;\n} sg_turn_desc;\n"
        self.assertEqual([], self.problems(self.PAGE, GOOD + self.FORMER + descriptor + functions))
        self.assertEqual(2, len(self.problems(self.PAGE, GOOD + self.FORMER + functions)))

    def test_wrong(self):
        for page, text in [
            (self.PAGE.replace("sg_thing_create", "sg_thing_open"), GOOD + self.FORMER),
            (self.PAGE.replace("`sg_thing_create`", "`sg_thing_create`, `sg_thing_create`"), GOOD + self.FORMER),
            (self.PAGE.replace("`sg_thing_create`", "`sg_thing_create`, `sg_thing_make`"), GOOD + self.FORMER),
            (self.PAGE.replace("`sg_thing_make`", "none"), GOOD + self.FORMER),
            (self.PAGE, GOOD + self.FORMER + "SG_API sg_status sg_thing_use(void);\n"),
        ]:
            self.assertTrue(self.problems(page, text), (page, text))


class BinaryInterface(unittest.TestCase):
    # Structs without a size, one with a size and with padding behind its last member; constants.
    MORE = """
/** A pair. */
typedef struct sg_pair {
  int32_t x; /**< . */
  int32_t y; /**< . */
} sg_pair;
/** Spare. */
typedef struct sg_spare {
  int64_t x;         /**< . */
  uint64_t reserved; /**< 0. */
} sg_spare;
/** Padded. */
typedef struct sg_padded {
  size_t struct_size; /**< . */
  int32_t small;      /**< . */
} sg_padded;
/** A limit. */
#define SG_LIMIT 12
/** A name. */
#define SG_NAME "one"
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def dump(self, text):
        """The interface of a header with that text."""
        shutil.rmtree(self.folder / "streamgemm", ignore_errors=True)
        (self.folder / "streamgemm").mkdir()
        head = "#ifndef T_H\n#define T_H\n#include <stddef.h>\n#include <stdint.h>\n#define SG_API\ntypedef int sg_status;\n"
        (self.folder / "streamgemm/version.h").write_text("#define SG_SOVERSION 1\n")
        (self.folder / "streamgemm/thing.h").write_text(f"{head}{text}\n#endif\n")
        return abi_dump.dump(self.folder, sys.argv[2:])

    def problems(self, today):
        return list(check_abi.problems(self.dump(GOOD + self.MORE), self.dump(today)))

    def test_additions_are_accepted(self):
        good = GOOD + self.MORE
        for old, new in [
            ("", ""),
            ("  int32_t count;      /**< Number, or 0. */", "  int32_t count; /**< . */\n  int64_t more; /**< . */"),
            ("SG_KIND_B = 1 ", "SG_KIND_B = 1, /**< . */\n  SG_KIND_C = 2 "),
            ("/** A limit. */", "/** Another. */\n#define SG_OTHER_LIMIT 3\n/** A limit. */"),
            ("  uint64_t reserved; /**< 0. */", "  uint32_t flags; /**< . */\n  uint32_t reserved; /**< 0. */"),
            ("  uint64_t reserved; /**< 0. */", "  double scale; /**< . */"),
            ("/** A pair. */", "/** . Since 0.10. */\nSG_API sg_status sg_thing_use(void);\n/** A pair. */"),
        ]:
            self.assertIn(old, good)
            self.assertEqual([], self.problems(good.replace(old, new)), old)

    def test_each_change_is_reported(self):
        good = GOOD + self.MORE
        for old, new, named in [
            ("SG_KIND_B = 1 ", "SG_KIND_B = 2 ", "SG_KIND_B"),
            ("SG_KIND_A = 0, /**< First, as ever. */", "", "SG_KIND_A"),
            ("int32_t count", "int64_t count", "count"),
            ("int32_t count", "uint32_t count", "count"),
            ("  int32_t x; /**< . */", "  int32_t w; /**< . */\n  int32_t x; /**< . */", "sg_pair"),
            ("  int32_t y; /**< . */", "  int32_t y; /**< . */\n  int32_t z; /**< . */", "8 bytes have become 12"),
            ("  int32_t x; /**< . */\n  int32_t y; /**< . */", "  int32_t y; /**< . */\n  int32_t x; /**< . */", "sg_pair, x"),
            ("  uint64_t reserved; /**< 0. */", "", "16 bytes have become 8"),
            ("  uint64_t reserved; /**< 0. */", "  double a; /**< . */\n  double b; /**< . */", "16 bytes have become 24"),
            ("  int64_t x;         /**< . */\n", "  int32_t x; /**< . */\n  int32_t w; /**< . */\n", "sg_spare, w: at 4"),
            ("  int64_t x;         /**< . */\n  uint64_t reserved; /**< 0. */", "  uint64_t reserved; /**< 0. */\n  int64_t x; /**< . */", "reserved: at 0"),
            ("  int32_t small;      /**< . */", "  int32_t small; /**< . */\n  int32_t late; /**< . */", "late: at 12"),
            ("  size_t struct_size; /**< . */\n  int32_t small", "  size_t bytes; /**< . */\n  int32_t small", "says its size"),
            ("const sg_thing_options *options", "sg_thing_options *options", "sg_thing_create"),
            ("Any\n * thread.", "Any thread. Since 0.10.", "STREAMGEMM_0.10"),
            ("SG_API sg_status sg_thing_create(const sg_thing_options *options, sg_thing **out_thing);", "", "sg_thing_create"),
            ("sg_thing *thing, void *user", "void *user, sg_thing *thing", "sg_thing_callback"),
            ("SG_LIMIT 12", "SG_LIMIT 13", "SG_LIMIT"),
            ('SG_NAME "one"', 'SG_NAME "two"', "SG_NAME"),
        ]:
            self.assertIn(old, good)
            found = self.problems(good.replace(old, new))
            self.assertTrue(any(named in each for each in found), (old, new, found))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
