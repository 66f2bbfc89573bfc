"""Which code travels with a topology: all that workers could not import themselves.

This is the one place that pickles: code gets to workers no other way, be they Spark's or processes
of this machine. What comes back, and what is kept, never is.
"""

from __future__ import annotations

import io
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MemberDescriptorType, ModuleType
from typing import Any

import cloudpickle
import msgspec

# What is registered by value is known to the whole process.
_packing = threading.Lock()


def pack(value: Any) -> bytes:
    """Write a value down with the code of the user that it refers to."""
    with _packing, _by_value(), io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def unpack(data: bytes) -> Any:
    """Read what :func:`pack` wrote; only for what came from our own driver."""
    return cloudpickle.loads(data)


@contextmanager
def _by_value() -> Iterator[None]:
    """Let modules of the user be written down as code, not as names to import."""
    chosen = [module for module in list(sys.modules.values()) if is_users(module)]
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)


def is_users(module: ModuleType) -> bool:
    """Say whether a module is neither Python's nor installed nor part of Thalweg."""
    file = getattr(module, "__file__", None)
    if not file or module.__name__.split(".")[0] in ("thalweg", "__main__"):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _INSTALLED)


_INSTALLED = [
    Path(path)
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
]


_CACHE = "__msgspec_cache__"


# --- structs -----------------------------------------------------------------------------------


class _Pickler(cloudpickle.Pickler):
    """Knows how to write classes of msgspec, which cloudpickle takes apart wrongly."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and _is_local(obj):
            if _CACHE in vars(obj):  # what msgspec remembers of a class; it finds it again
                delattr(obj, _CACHE)
            if issubclass(obj, msgspec.Struct):
                return _struct_parts(obj)
        return super().reducer_override(obj)


def _is_local(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or (module is not None and is_users(module))


def _struct_parts(kind: type[msgspec.Struct]) -> tuple[Any, ...]:
    """Take a struct apart: first its fields, and, once it exists, its methods."""
    fields = msgspec.structs.fields(kind)
    defaults = {f.name: f.default for f in fields if f.default is not msgspec.NODEFAULT}
    factories = {
        f.name: f.default_factory for f in fields if f.default_factory is not msgspec.NODEFAULT
    }
    annotations = {field.name: field.type for field in fields}
    config = {
        name: value
        for name in (
            "frozen",
            "order",
            "eq",
            "array_like",
            "forbid_unknown_fields",
            "omit_defaults",
        )
        if (value := getattr(kind.__struct_config__, name)) is not None
    }
    names = kind.__name__, kind.__module__, kind.__qualname__
    methods = {name: value for name, value in vars(kind).items() if _is_method(name, value)}
    parts = names, annotations, defaults, factories, config
    return _make_struct, parts, methods, None, None, _set_methods


def _is_method(name: str, value: Any) -> bool:
    made = name.startswith("__struct") or isinstance(value, MemberDescriptorType)
    return not made and name not in _MADE


_MADE = {"__slots__", "__module__", "__qualname__", "__annotations__", "__match_args__"} | {
    "__doc__",
    "__weakref__",
    "__dict__",
    "__rich_repr__",
}


def _make_struct(
    names: tuple[str, str, str],
    annotations: Mapping[str, Any],
    defaults: Mapping[str, Any],
    factories: Mapping[str, Any],
    config: Mapping[str, Any],
) -> type[msgspec.Struct]:
    name, module, qualname = names
    made = {n: msgspec.field(default_factory=factory) for n, factory in factories.items()}
    space = {
        "__module__": module,
        "__qualname__": qualname,
        "__annotations__": dict(annotations),
        **defaults,
        **made,
    }
    meta: Any = type(msgspec.Struct)
    return meta(name, (msgspec.Struct,), space, **config)


def _set_methods(kind: type, methods: Mapping[str, Any]) -> None:
    for name, value in methods.items():
        setattr(kind, name, value)
