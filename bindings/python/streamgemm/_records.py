# SPDX-License-Identifier: Apache-2.0
"""The info structs of the library as plain objects with the header's fields."""

import os

from . import _cuda, _raw
from ._enums import LinkClass, LogLevel, value_of
from ._tables import RECORDS


class Record:
    """A record, read once. Compares and prints by its fields."""

    _struct = None

    def __init__(self, filled):
        for name in fields_of(self._struct):
            setattr(self, name, getattr(filled, name))
        self._convert(filled)

    def _convert(self, filled):
        """Converts fields to Python objects that C does not have."""

    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__} has no {name}; it has {', '.join(vars(self))}")

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    @classmethod
    def _read(cls, call, *arguments):
        """The new struct that `call` fills."""
        struct = cls._struct()
        call(*arguments, struct)
        return cls(struct)


def fields_of(struct):
    """Names of a struct's fields."""
    return sorted(
        name
        for name, value in vars(struct).items()
        if not name.startswith("_") and isinstance(value, property) and name not in ("this", "thisown")
    )


class DevicePeer(Record):
    _struct = _raw.sg_device_peer

    def _convert(self, filled):
        self.link_class = LinkClass(self.link_class)


class DeviceInfo(Record):
    _struct = _raw.sg_device_info

    def _convert(self, filled):
        self.peers = tuple(DevicePeer(filled.peer(index)) for index in range(vars(self).pop("peer_count")))


for _name, (_struct, _doc) in RECORDS.items():
    if _name not in globals():
        globals()[_name] = type(_name, (Record,), {"__module__": __name__, "_struct": getattr(_raw, _struct)})
    globals()[_name].__doc__ = _doc


def _all(kind, count, describe):
    number = count()
    return [kind._read(describe, index) for index in range(number)]


def devices():
    """All devices of all usable backends."""
    _cuda.use_package()
    return _all(DeviceInfo, _raw.sg_device_count, _raw.sg_device_get_info)


def metrics_text():
    """The counters of all contexts of the process as OpenMetrics text: what an HTTP server answers a scraper with."""
    return _raw.metrics_text()


def load_backend(path):
    """Loads the plugin at `path`, whose devices can be opened then. It stays loaded. NoDevice says why it cannot be used."""
    _raw.sg_backend_load(os.path.abspath(os.fspath(path)))


def set_log(level):
    """Logs messages of that level and above, of all areas, to standard error: "off", "error", "warn", "info", "debug" or a LogLevel.
    SG_LOG has no effect then."""
    _raw.log_set(value_of(LogLevel, level, "level"))


def backends():
    """All backends, with the reason if one cannot be used."""
    failure = _cuda.use_package()
    found = _all(BackendInfo, _raw.sg_backend_count, _raw.sg_backend_get_info)
    for backend in found:
        if failure and backend.name == "cuda" and not backend.origin:  # which stands for no plugin
            backend.reason = failure
    return found
