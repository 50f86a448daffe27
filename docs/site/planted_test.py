#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the pages report planted defects."""
import json
import pathlib
import tempfile
import types
import unittest
import xml.etree.ElementTree as xml

import docstrings
import links
import members
import pages
import pictures
import searched
import snippets_test
import stage


class Blocks(unittest.TestCase):
    def why(self, text):
        blocks, complaints = pages.parse("docs/page.md", text)
        return complaints + [why for why in (snippets_test.untestable(block, "/nowhere") for block in blocks) if why]

    def test_good(self):
        self.assertEqual(self.why("```c\nint x;\n```\n"), [])
        self.assertEqual(self.why("<!-- test: not run: needs a GPU and an hour -->\n```text\nfigures\n```\n"), [])
        self.assertEqual(self.why("1. a list\n\n    its second paragraph\n"), [])

    def test_no_way_to_be_tested(self):
        for text in ("```\nx\n```\n", "```fortran\nx\n```\n", "```text\nx\n```\n", "    x = 1\n", "```{code}\nx\n```\n"):
            with self.subTest(text):
                self.assertEqual(len(self.why(text)), 1)

    def test_markers(self):
        self.assertIn("reason", self.why("<!-- test: not run: no -->\n```c\nx\n```\n")[0])
        self.assertIn("not a marker", self.why("<!-- test: skip -->\n```c\nx\n```\n")[0])
        self.assertIn("followed by no block", self.why("<!-- test: output -->\ntext\n")[0])
        self.assertIn("there is no", self.why("<!-- test: same as a.c -->\n```c\nx\n```\n")[0])
        self.assertIn("no end", self.why("```c\nx\n")[0])

    def test_output(self):
        self.assertTrue(snippets_test.matches("a ... c\n", "a b c\n"))
        self.assertFalse(snippets_test.matches("a\n", "b\n"))
        blocks, _ = pages.parse("p.md", "```c\nx\n```\n\n<!-- test: output -->\n```text\n1\n```\n")
        self.assertEqual(snippets_test.outputs(blocks), {"p.md:2": "1\n"})


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("docs", "bench/results", "include/streamgemm"):
            (self.root / name).mkdir(parents=True)

    def test_status(self):
        (self.root / "include/streamgemm/status.h").write_text("  SG_STATUS_OK = 0,\n  SG_STATUS_NEW = -99,\n")
        (self.root / "docs/troubleshooting.md").write_text("| `SG_STATUS_OK` | success | |\n")
        self.assertEqual(list(snippets_test.missing_statuses(self.root)), ["docs/troubleshooting.md: no row for SG_STATUS_NEW"])

    def test_figures(self):
        rows = [{"case": "x", "variant": "one", "seconds": 2e-6, "products": 2}, {"case": "x", "variant": "two", "seconds": 4e-3}]
        (self.root / "bench/results/r.json").write_text(json.dumps({"rows": rows}))
        page = self.root / "docs/choosing.md"
        for figures, source, faults in (("1 us", "`r.json`, `x`", 0), ("1.1 us", "`r.json`, `x`", 1), ("1 us", "`other.json`, `x`", 1), ("1 us", "`r.json`, `y`", 2)):
            page.write_text("| if | use | time | instead of | time | record, case |\n|---|---|---|---|---|---|\n"
                            f"| so | this (`one`) | {figures} | that (`two`) | 4 ms | {source} |\n")
            self.assertEqual(len(list(snippets_test.wrong_figures(self.root))), faults, (figures, source))


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_dead(self):
        (self.folder / "a.html").write_text('<a href="b.html#there">x</a><a href="#here">x</a><p id="here"><a href="https://example.org/x">x</a>')
        (self.folder / "b.html").write_text('<h1 id="there">')
        self.assertEqual(links.dead(self.folder), [])
        (self.folder / "b.html").write_text('<img src="c.png"><a href="a.html#gone">x</a><a href="../outside.html">x</a>')
        self.assertEqual([x.rsplit(": ", 1)[1] for x in links.dead(self.folder)], ["no such anchor", "no such file", "no such anchor", "no such file"])

    def test_dead_in_the_project(self):
        root = self.folder / "project"
        (root / "docs").mkdir(parents=True)
        (root / "include/streamgemm").mkdir(parents=True)
        (root / "include/streamgemm/job.h").touch()
        (root / "LICENSE").touch()
        (root / "README.md").write_text("[a](docs/a.md#x) [gone](docs/gone.md) [h](include/streamgemm/job.h) [L](LICENSE) [d](include) ![p](p.png)\n```sh\n[x](y)\n```\n")
        (root / "docs/a.md").write_text("[up](../README.md)\n")
        stager = stage.Stager(root, self.folder / "staged")
        for page in sorted(stager.pages):
            stager.page(page)
        self.assertEqual(stager.complaints, ["README.md: there is no docs/gone.md", "README.md: there is no p.png"])
        self.assertIn("[h](api/c/job.md) {download}`L <LICENSE>` `d`", (self.folder / "staged/README.md").read_text())

    def test_search(self):
        index = {"docnames": ["api/csharp/GemmContext", "other"], "terms": {"multiplyasync": 0}, "titleterms": {"attention_backward": [1]}}
        (self.folder / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
        self.assertEqual(searched.not_found(self.folder, {"MultiplyAsync": "api/csharp/GemmContext", "attention_backward": "other"}), [])
        self.assertEqual(searched.not_found(self.folder, {"MultiplyAsync": "other", "Multiply": "other"}),
                         ["the search for MultiplyAsync does not find other", "the search for Multiply does not find other"])


class Staging(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "project"
        (self.root / "docs").mkdir(parents=True)
        (self.root / "bench/results").mkdir(parents=True)
        (self.root / "docs/other.md").write_text("# What it is called\n")

    def staged(self, text):
        (self.root / "docs/page.md").write_text(text)
        stager = stage.Stager(self.root, self.root.with_name("staged"))
        stager.page(pathlib.Path("docs/page.md"))
        return self.root.with_name("staged").joinpath("docs/page.md").read_text(), stager.complaints

    def test_titles(self):
        self.assertEqual(self.staged("[other.md](other.md#a) [`other.md`](other.md) [this](other.md)")[0],
                         "[What it is called](other.md#a) [What it is called](other.md) [this](other.md)")

    def test_tabs_of_blocks(self):
        code = {language: f"```{language}\n[x](y)\n```\n" for language in ("c", "python", "java")}
        output = "<!-- test: output -->\n```text\n1\n```\n"
        text, complaints = self.staged(f"{code['c']}\n{output}\n{code['python']}\nprose\n\n{code['java']}")
        self.assertEqual(complaints, [])
        self.assertEqual([line for line in text.split("\n") if "{" in line], ["``````{tabs}", "`````{tab} C", "`````{tab} Python"])
        self.assertLess(text.index("```text"), text.index("{tab} Python"), "an output is in the tab of its program")
        self.assertGreater(text.index("```java"), text.index("``````\n\nprose"))
        self.assertNotIn("tabs", self.staged(code["c"] + "\n" + code["c"])[0], "two programs of one language")

    def test_tabs_of_sections(self):
        text, _ = self.staged("# T\n\n## C\n\nin [other.md](other.md)\n\n## Python\n\ntwo\n\n## Next\n\nthree\n")
        self.assertIn("``````{tabs}\n`````{tab} C\n\nin [What it is called](other.md)\n\n`````\n`````{tab} Python\n\ntwo\n\n`````\n``````\n## Next", text)
        self.assertNotIn("tabs", self.staged("## C\n\nx\n\n## Other\n\ny\n\n## Python\n")[0])

    def test_places(self):
        self.assertEqual(len(self.staged("<!-- site: chart none -->\n")[1]), 1)
        self.assertEqual(self.staged("```sh\n<!-- site: chart none -->\n```\n")[1], [])
        record, _, _, _, cases = pictures.CHARTS["layers"]
        rows = [{"case": case, "variant": variant, "seconds": 0.00125} for case, variants in cases for variant in variants]
        (self.root / "bench/results" / record).write_text(json.dumps({"rows": rows}))
        text, complaints = self.staged("<!-- site: chart layers -->\n")
        self.assertEqual((complaints, text.count("1.25 ms</text>")), ([], len(rows)))
        (self.root / "bench/results" / record).write_text(json.dumps({"rows": rows[1:]}))
        self.assertEqual(self.staged("<!-- site: chart layers -->\n")[1], [f"{record} has no row '{rows[0]['case']}', '{rows[0]['variant']}'"])


class Reference(unittest.TestCase):
    def test_docstrings(self):
        class Context:
            def run_async(self, x, *, scale=1, untracked=False, **unknown):
                """Submits it. untracked: not said here.

                x: an array: of f32.
                    It stays. scale: a number.
                untracked: no order.

                Code:

                    scale: untouched
                """

            def run(self, x, *, scale=1, untracked=False):
                """Computes it.

                x, scale: as for run_async.
                untracked: as for run_async.

                No parameter: a sentence.
                """

        stub = "class Context:\n    def run(self, x: _Source, *, scale: float | None = ..., untracked: Literal['a', 'b'] = ...) -> Any: ...\n"
        made = docstrings.Docstrings(types.SimpleNamespace(Context=Context), stub)
        lines = made.fields(Context.run, "Context.run")
        self.assertEqual(lines[:11], ["Computes it.", "", "No parameter: a sentence.", "",
                                      ":param x: an array: of f32. It stays.", ":type x: array or Job", ":param scale: a number.", ":type scale: float or None",
                                      ":param untracked: no order.", ':type untracked: "a" or "b"', ":rtype: object"])
        self.assertIn("DeadlineExceeded", "".join(lines))
        lines = made.fields(Context.run_async, "Context.run_async")
        self.assertEqual(lines[:7], ["Submits it.", "", "Code:", "", "::", "", "    scale: untouched"])
        self.assertIn(":param untracked: no order.", lines)
        self.assertNotIn("DeadlineExceeded", "".join(lines))

    def test_csharp(self):
        member = ('<memberdef kind="function" prot="{}" static="yes"><type>Task</type><name>RunAsync</name><argsstring>(in Matrix a)</argsstring><briefdescription><para>Runs <computeroutput>a</computeroutput>'
                  '_b.</para></briefdescription><detaileddescription><para><parameterlist kind="param"><parameteritem><parameternamelist><parametername>a</parametername></parameternamelist>'
                  '<parameterdescription><para>Read.</para></parameterdescription></parameteritem></parameterlist></para></detaileddescription></memberdef>')
        text = f'<compounddef kind="class"><compoundname>StreamGemm::X</compoundname>{member.format("public")}{member.format("private").replace("RunAsync", "Hidden")}</compounddef>'
        name, page = members.class_page(xml.fromstring(text))
        self.assertEqual(name, "X")
        for part in ("## RunAsync", "static Task RunAsync(in Matrix a)", "Runs `a`\\_b.", "- `a`: Read."):
            self.assertIn(part, page)
        self.assertNotIn("Hidden", page)


if __name__ == "__main__":
    unittest.main()
