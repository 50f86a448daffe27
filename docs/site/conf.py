# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx; build.py passes the version and the folder of Doxygen's XML."""
import importlib.util
import re

project = "StreamGEMM"
author = "the StreamGEMM authors"
copyright = "the StreamGEMM authors; Apache-2.0"
extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc"]
root_doc = "index"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # the anchors of a code host
suppress_warnings = ["myst.header"]
highlight_language = "text"
smartquotes_action = "D"  # dashes between a name and its meaning; quotes stay as written

breathe_default_project = "c"
breathe_domain_by_extension = {"h": "c"}

autodoc_member_order = "groupwise"
add_module_names = False
autodoc_typehints = "none"
if importlib.util.find_spec("torch") is None:
    autodoc_mock_imports = ["torch"]  # streamgemm.torch is documented without it
# Types of the C library, and what Python's own documentation describes.
nitpick_ignore_regex = [("c:identifier", r"u?int\d+_t|size_t"), ("py:.*", r".*")]

html_theme = "furo"
html_title = "StreamGEMM"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False}

default_role = "code"


PARAMETER = re.compile(r"(\w+(?:, \w+)*): (.+)")


def paragraph_to_rst(lines):
    if lines[0].startswith("    "):
        return ["::", "", *lines]
    if PARAMETER.match(lines[0]) and all((PARAMETER.match(line) or line.startswith("    ")) and not line.endswith(",") for line in lines):
        return [PARAMETER.sub(r":\1: \2", line) if not line.startswith("    ") else line for line in lines]
    return lines


def docstring_to_rst(_app, _what, _name, _object, _options, lines):
    """The docstrings are plain text: a paragraph of `name, name: meaning` describes parameters, an indented paragraph is code."""
    out, paragraph = [], []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            out += [*paragraph_to_rst(paragraph), ""]
            paragraph = []
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", docstring_to_rst)
