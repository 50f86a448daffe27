# SPDX-License-Identifier: Apache-2.0
"""Pages of the C# reference, from Doxygen's XML, and of the members of the Java package, which link to Javadoc's pages. They are
pages of the site, so that its search finds their members; the tables of their languages link to them."""
import json
import re
import xml.etree.ElementTree as xml

ORPHAN = "---\norphan: true\n---\n\n"


def escaped(text):
    return re.sub(r"([\\`*_\[\]<>|#$])", r"\\\1", text)


def plain(node):
    return " ".join("".join(node.itertext()).split()) if node is not None else ""


def prose(node):
    """The paragraphs of a description, without its lists of parameters."""
    paragraphs = []
    for para in node.findall("para") if node is not None else []:
        text = para.text or ""
        for child in para:
            if child.tag not in ("parameterlist", "simplesect"):
                text += plain(child) if child.tag != "computeroutput" else f"\0{plain(child)}\1"
            text += child.tail or ""
        text = escaped(" ".join(text.split())).replace("\0", "`").replace("\1", "`")
        if text:
            paragraphs.append(text)
    return "\n\n".join(paragraphs)


def described(node):
    """A description in full: prose, parameters, result, exceptions."""
    parts = [prose(node.find("briefdescription")), prose(node.find("detaileddescription"))]
    details = node.find("detaileddescription")
    for kind, title in (("param", "Parameters"), ("exception", "Throws")):
        rows = []
        for item in details.iter("parameteritem") if details is not None else []:
            names = ", ".join(f"`{plain(x)}`" for x in item.iter("parametername"))
            owner = next((x.get("kind") for x in details.iter("parameterlist") if item in list(x)), None)
            if owner == kind:
                rows.append(f"- {names}: {prose(item.find('parameterdescription'))}")
        if rows:
            parts.append(f"*{title}*\n\n" + "\n".join(rows))
    result = " ".join(prose(x) for x in details.iter("simplesect") if x.get("kind") == "return") if details is not None else ""
    if result:
        parts.append(f"*Returns* {result}")
    return "\n\n".join(x for x in parts if x)


def signature(member):
    kind = plain(member.find("type"))
    line = " ".join(x for x in ("static" if member.get("static") == "yes" else "", kind, plain(member.find("name"))) if x)
    if member.get("kind") == "property":
        return line + (" { get; set; }" if member.get("settable") == "yes" else " { get; }")
    arguments = plain(member.find("argsstring")).replace("default(CancellationToken)", "default").replace("< ", "<").replace(" >", ">")
    if len(line + arguments) > 100 and ", " in arguments:
        split = re.split(r", (?![^<]*>)", arguments[1:-1])
        arguments = "(\n    " + ",\n    ".join(split) + ")"
    return line + arguments


def class_page(compound):
    name = compound.findtext("compoundname").rpartition("::")[2]
    kind = compound.get("kind")
    bases = [x.text.rpartition(".")[2] for x in compound.findall("basecompoundref")]
    out = [f"# {name}\n", f"```csharp\npublic {kind} {name}{' : ' + ', '.join(bases) if bases else ''}\n```\n", described(compound), ""]
    members = {}
    for member in compound.iter("memberdef"):
        if member.get("prot") == "public" and plain(member.find("briefdescription")):
            members.setdefault(member.findtext("name"), []).append(member)
    for title, overloads in members.items():
        title = title.replace("< ", "<").replace(" >", ">")
        out.append(f"## {escaped(title)}\n")
        seen = set()
        for member in overloads:
            out.append(f"```csharp\n{signature(member)}\n```\n")
            text = described(member)
            if text not in seen:
                out.append(text + "\n")
            seen.add(text)
    return name, "\n".join(out)


def enumerations(namespace):
    out = ["# Enumerations\n"]
    for member in sorted(namespace.iter("memberdef"), key=lambda x: x.findtext("name")):
        if member.get("kind") != "enum" or member.get("prot") != "public":
            continue
        out.append(f"## {member.findtext('name')}\n\n{described(member)}\n\n| value | meaning |\n|---|---|")
        for value in member.findall("enumvalue"):
            text = " ".join(prose(value.find(x)).replace("\n", " ") for x in ("briefdescription", "detaileddescription")).strip()
            out.append(f"| `{value.findtext('name')}` | {text} |")
        out.append("")
    return "\n".join(out)


def brief_of(page):
    """The first sentence below the signature."""
    text = page.split("```\n", 1)[1].strip().split("\n")[0]
    return re.split(r"(?<=\.) ", text)[0]


def csharp(documents, folder):
    """Writes a page for each public type."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, errors = [], []
    for file in sorted(documents.glob("*StreamGemm_1_1*.xml")):
        compound = xml.parse(file).getroot()[0]
        name = compound.findtext("compoundname")
        if compound.get("prot") != "public" or "Internal" in name or name.count("::") != 1 or not plain(compound.find("briefdescription")):
            continue
        name, page = class_page(compound)
        if name.endswith("Exception") and name != "StreamGemmException":
            errors.append(page.replace("\n## ", "\n### ").replace("# ", "## ", 1))
            continue
        (folder / f"{name}.md").write_text(ORPHAN + page)
        rows.append((name, brief_of(page)))
    (folder / "enumerations.md").write_text(ORPHAN + enumerations(xml.parse(documents / "namespaceStreamGemm.xml").getroot()[0]))
    (folder / "exceptions.md").write_text(ORPHAN + "# Exceptions\n\nAll are `StreamGemmException`s or implement `IStreamGemmError`.\n\n" + "\n".join(errors))
    rows += [("enumerations", "All enumerations, with their values."), ("exceptions", "An exception for each status.")]
    table = "\n".join(f"| [{name[0].upper() + name[1:]}]({name}.md) | {text} |" for name, text in rows)
    (folder / "index.md").write_text("# C\\#\n\nNamespace `StreamGemm`. How operands, tasks, errors and lifetimes work: [C\\#](../../docs/csharp.md).\n\n"
                                     f"| type | |\n|---|---|\n{table}\n")


def java(documents, folder):
    """Writes a page for each class of the Java package: its members, which link to Javadoc's text."""
    folder.mkdir(parents=True, exist_ok=True)
    def read(name):
        text = (documents / f"{name}-search-index.js").read_text()
        return json.loads(text[text.index("["):text.rindex("]") + 1])
    classes = {each["l"]: [] for each in read("type") if "p" in each}
    for each in read("member"):
        classes.setdefault(each["c"], []).append((each["l"], each.get("u", each["l"])))
    for name, members in classes.items():
        page = f"../../java/org/streamgemm/{name}.html"
        rows = "\n".join(f'- <a href="{page}#{anchor.replace("<", "%3C").replace(">", "%3E")}">{escaped(label)}</a>' for label, anchor in members)
        (folder / f"{name}.md").write_text(f'{ORPHAN}# {name} (Java)\n\n<a href="{page}">Description of org.streamgemm.{name}</a>. Its members:\n\n{rows}\n')
    rows = "\n".join(f"| [{name}]({name}.md) | {len(members)} | " f'<a href="../../java/org/streamgemm/{name}.html">Javadoc</a> |' for name, members in sorted(classes.items()))
    (folder / "index.md").write_text("# Java\n\nPackage `org.streamgemm`. How operands, futures, errors and lifetimes work: [Java](../../docs/java.md). All of it in one place: "
                                     f'<a href="../../java/org/streamgemm/package-summary.html">Javadoc</a>.\n\n| class | members | description |\n|---|---|---|\n{rows}\n')
