#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the pages report planted defects."""
import json
import pathlib
import tempfile
import unittest

import links
import pages
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


if __name__ == "__main__":
    unittest.main()
