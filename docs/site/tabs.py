# SPDX-License-Identifier: Apache-2.0
"""Tabs: the directive `tabs` holds directives `tab` with a title each. Without JavaScript all are shown, one below the other."""
import html

from docutils import nodes
from docutils.parsers.rst import Directive


class tabs(nodes.General, nodes.Element):
    pass


class tab(nodes.General, nodes.Element):
    pass


class Tabs(Directive):
    has_content = True

    def run(self):
        node = tabs()
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


class Tab(Directive):
    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        node = tab(title=self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def visit_tabs(writer, node):
    titles = [each["title"] for each in node.children if isinstance(each, tab)]
    buttons = "".join(f'<button type="button" role="tab" data-tab="{html.escape(x)}">{html.escape(x)}</button>' for x in titles)
    writer.body.append(f'<div class="sg-tabs"><div class="sg-tab-titles" role="tablist">{buttons}</div>')


def visit_tab(writer, node):
    title = html.escape(node["title"])
    writer.body.append(f'<div class="sg-tab" role="tabpanel" data-tab="{title}"><p class="sg-tab-title">{title}</p>')


def depart(writer, _node):
    writer.body.append("</div>")


def setup(app):
    app.add_node(tabs, html=(visit_tabs, depart))
    app.add_node(tab, html=(visit_tab, depart))
    app.add_directive("tabs", Tabs)
    app.add_directive("tab", Tab)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
