# SPDX-License-Identifier: Apache-2.0
"""CUDA from packages: the plugin of the package streamgemm-cuda, with NVIDIA's libraries of theirs."""

import ctypes
import os
import threading

from . import _raw
from ._errors import NoDevice

_lock = threading.Lock()
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
        if failure and name.startswith("cuda"):
            raise NoDevice(failure)


def _load():
    from importlib.util import find_spec

    package = find_spec("streamgemm_cuda")
    if package is None or _has_backend():
        return ""
    if _has_driver():
        _load_libraries()
    try:
        _raw.sg_backend_load(os.path.join(package.submodule_search_locations[0], "libstreamgemm-cuda.so"))
    except NoDevice as failure:
        return str(failure)
    return ""


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


def _after_fork():
    """Another thread of the parent may have held it."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
