# SPDX-License-Identifier: Apache-2.0
"""Where `meson install` puts the package. usage: install_dir.py PREFIX MESONS-OWN-FOLDER

Prints nothing when Meson's own folder is one that this Python imports from, or when no folder below the prefix is;
otherwise that folder.
"""

import os
import site
import sys


def folder(prefix, default, searched):
    """The folder to install to; None: Meson's own."""
    default = os.path.normpath(os.path.join(prefix, default))
    searched = [os.path.normpath(path) for path in searched]
    if default in searched:
        return None
    below = [path for path in searched if path.startswith(os.path.join(prefix, "")) and path.endswith("-packages")]
    return below[0] if below else None


if __name__ == "__main__":
    print(folder(*sys.argv[1:3], [*sys.path, *site.getsitepackages(), site.getusersitepackages()]) or "")
