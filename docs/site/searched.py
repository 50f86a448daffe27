#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the built search index finds, as the search page looks words up: by stem in titles and texts.  searched.py FOLDER WORD..."""
import json
import pathlib
import sys

# A word, and the page that has to be among its results.
WANTED = {"MultiplyAsync": "api/csharp/GemmContext", "attention_backward": "api/python/attention", "gemmAsync": "api/java/Context",
          "sg_attention_backward": "api/c/attention", "push_async": "api/python/pipelines"}


def stem_of(word):
    """Of Sphinx's own stemmer, where it is installed; few names of functions have another stem than themselves."""
    try:
        from sphinx.search.en import SearchEnglish
        return SearchEnglish({}).stem(word.lower())
    except ImportError:
        return word.lower()


class Index:
    def __init__(self, folder):
        text = pathlib.Path(folder, "searchindex.js").read_text()
        self.read = json.loads(text[text.index("(") + 1:text.rindex(")")])

    def pages(self, word):
        found = set()
        for table in ("terms", "titleterms"):
            at = self.read[table].get(stem_of(word), [])
            found |= {self.read["docnames"][i] for i in ([at] if isinstance(at, int) else at)}
        return found


def not_found(folder, wanted=None):
    """One sentence for each word whose page the search does not find."""
    index = Index(folder)
    return [f"the search for {word} does not find {page}" for word, page in (wanted or WANTED).items() if page not in index.pages(word)]


if __name__ == "__main__":
    for each in sys.argv[2:]:
        print(each, *sorted(Index(sys.argv[1]).pages(each)))
