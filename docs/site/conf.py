# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx; build.py passes the version and the folder of Doxygen's XML."""
import gc
import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from docstrings import Docstrings  # noqa: E402

project = "StreamGEMM"
author = "the StreamGEMM authors"
copyright = "the StreamGEMM authors; Apache-2.0"
extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "tabs"]
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
# Types of the C library, and what Python's own documentation describes.
nitpick_ignore_regex = [("c:identifier", r"u?int\d+_t|size_t"), ("py:.*", r".*")]

html_theme = "furo"
html_title = "StreamGEMM"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False}

default_role = "code"


gc.set_threshold(200_000, 10, 10)  # documents are millions of small objects that stay


def share_navigation(app):
    """Pages outside the tables of contents, those of C# and Java, have one navigation in each folder: most of the time of a page."""
    make, known = app.builder._get_local_toctree, {}

    def get(docname, *arguments, **options):
        folder, _, page = docname.rpartition("/")
        if folder not in ("api/csharp", "api/java") or page == "index":
            return make(docname, *arguments, **options)
        key = (folder, arguments, tuple(sorted(options.items())))
        if key not in known:
            known[key] = make(docname, *arguments, **options)
        return known[key]

    app.builder._get_local_toctree = get


def setup(app):
    app.connect("builder-inited", share_navigation)
    package = importlib.import_module("streamgemm")
    docstrings = Docstrings(package, pathlib.Path(package.__file__).with_name("__init__.pyi").read_text())

    def process(_app, _what, name, of, _options, lines):
        lines[:] = docstrings.fields(of, name.removeprefix("streamgemm."))

    app.connect("autodoc-process-docstring", process)
