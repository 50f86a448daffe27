# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx; build.py passes the version and the folder of Doxygen's XML."""
import gc
import html
import importlib
import importlib.util
import pathlib
import re
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
if importlib.util.find_spec("torch") is None:
    autodoc_mock_imports = ["torch"]  # streamgemm.torch is documented without it
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


gc.disable()  # documents are millions of small objects that stay


def share_navigation(app):
    """The navigation is made once for each folder, which took half of the time, and the page and those above it are marked in it."""
    make, known = app.builder._get_local_toctree, {}

    def get(docname, collapse=True, **options):
        beside = docname.rpartition("/")[0] + "/no page" if "/" in docname else "no page"  # marks nothing
        key = (beside, collapse, tuple(sorted(options.items())))
        if key not in known:
            known[key] = make(beside, collapse, **options)
        shown = known[key]
        above = {child: parent for parent, children in app.env.toctree_includes.items() for child in children}
        each = docname
        while each in above:
            target = html.escape(app.builder.get_relative_uri(docname, each)) or "#"
            link = re.escape(app.builder.get_relative_uri(beside, each))
            own = "current reference" if each == docname else "reference"
            shown = re.sub(f'<li class="(toctree-l\\d)"><a class="reference internal" href="{link}">',
                           rf'<li class="\1 current"><a class="{own} internal" href="{target}">', shown)
            each = above[each]
        return shown

    app.builder._get_local_toctree = get


def setup(app):
    app.connect("builder-inited", share_navigation)
    package = importlib.import_module("streamgemm")
    docstrings = Docstrings(package, pathlib.Path(package.__file__).with_name("__init__.pyi").read_text())

    def process(_app, _what, name, of, _options, lines):
        lines[:] = docstrings.fields(of, name.removeprefix("streamgemm."))

    app.connect("autodoc-process-docstring", process)
