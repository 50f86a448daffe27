# SPDX-License-Identifier: Apache-2.0
"""CUDA from packages: the plugin of the package streamgemm-cuda, with NVIDIA's libraries of theirs."""

import ctypes
import os
import threading

from . import _raw
from ._errors import NoDevice

_lock = threading.RLock()  # a handler of signals may be inside of it
_is_done = False
_failure = ""  # why the plugin cannot be used


def use_package():
    """Loads the plugin, the first time. Returns why it cannot be used; "": it can, or the package is not installed."""
    global _is_done, _failure
    with _lock:
        if not _is_done:
            _failure = _load()
            _is_done = True
        return _failure


def use_package_for(device):
    """Before a context on `device` is created. NoDevice: a CUDA device is named, and the plugin cannot be used."""
    name = device or "auto"
    if name == "auto":
        name = os.environ.get("SG_DEVICE") or name
    if isinstance(name, str) and name.startswith(("auto", "cuda")):
        failure = use_package()
        if failure and name.startswith("cuda") and not _has_backend():  # another plugin may have been loaded since
            raise NoDevice(failure)


def _load():
    folder = _folder()
    if folder is None or _has_backend():
        return ""
    if _has_driver():
        _load_libraries()
    try:
        _raw.sg_backend_load(os.path.join(folder, "libstreamgemm-cuda.so"))
    except NoDevice as failure:
        return str(failure)
    return ""


def _folder():
    """Of the package; None: it is not installed, or is another module of that name."""
    from importlib.util import find_spec

    try:
        package = find_spec("streamgemm_cuda")
    except ValueError:
        return None
    return package.submodule_search_locations[0] if package and package.submodule_search_locations else None


def _has_backend():
    """Whether another plugin has CUDA's devices: that of SG_PLUGIN_PATH, or of the library's folder."""
    info = _raw.sg_backend_info()
    for index in range(_raw.sg_backend_count()):
        _raw.sg_backend_get_info(index, info)
        if info.name == "cuda" and info.available:
            return True
    return False


def _has_driver():
    """Without it hundreds of megabytes would be mapped in vain."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _load_libraries():
    """Loads those that cuda.pathfinder finds: the plugin uses a process's own before it looks for others."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return
    names = ["cublasLt", "cublas"]
    if os.environ.get("SG_CUDA_CUDNN") in ("1", "deterministic"):
        names.append("cudnn")
    for name in names:
        try:
            load_nvidia_dynamic_lib(name)
        except (OSError, RuntimeError):
            pass  # it is not found; the plugin tells what it misses


# A fork waits for a thread that loads: the child would have locks of Python's and of the loader without their owner.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
