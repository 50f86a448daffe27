#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder are written from the reference alone, and stay as short as they are here: what makes one longer is a loss
of the interface. Lines that are not blank count, except for the licence; none is longer than 120 columns, and C and Java have the
formatter's line breaks."""

import pathlib
import shutil
import subprocess
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MOST_COLUMNS = 120
MOST_LINES = {"queue.c": 48, "mlp.py": 21, "pipeline.py": 18, "service.py": 45, "Service.java": 40, "Service.cs": 45}
STYLES = {"queue.c": ".clang-format", "Service.java": "bindings/java/.clang-format"}


def complaints(text, most_lines):
    lines = [line for line in text.splitlines() if line.strip() and "SPDX-License-Identifier" not in line]
    if len(lines) > most_lines:
        yield f"{len(lines)} lines; at most {most_lines}"
    yield from (f"{len(line)} columns: {line}" for line in lines if len(line) > MOST_COLUMNS)


class Lengths(unittest.TestCase):
    def test_each(self):
        programs = {path.name for path in HERE.iterdir() if path.suffix in (".c", ".py", ".java", ".cs") and path.name != pathlib.Path(__file__).name}
        self.assertEqual(set(MOST_LINES), programs)
        for name, most in MOST_LINES.items():
            self.assertEqual([], [f"{name}: {what}" for what in complaints((HERE / name).read_text(encoding="utf-8"), most)])

    def test_a_program_that_is_too_long_is_found(self):
        self.assertEqual(["3 lines; at most 2"], list(complaints("// SPDX-License-Identifier: Apache-2.0\na\n\nb\nc\n", 2)))
        self.assertEqual([f"121 columns: {'x' * 121}"], list(complaints("x" * 121, 2)))

    @unittest.skipUnless(shutil.which("clang-format-14"), "clang-format-14 is not installed")
    def test_line_breaks(self):
        for name, style in STYLES.items():
            command = ["clang-format-14", f"--style=file:{HERE.parent.parent / style}", "--dry-run", "-Werror", str(HERE / name)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual((0, ""), (done.returncode, done.stderr))


if __name__ == "__main__":
    unittest.main()
