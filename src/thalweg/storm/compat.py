"""Lets ``import streamparse`` and ``import pystorm`` find our classes where they are not there."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from thalweg.storm import (
    bolts,
    components,
    logs,
    outside,
    pipes,
    specs,
    spouts,
    streams,
    topologies,
)

#: Ours that have what both packages offer at the top; all others would have to be imported, too.
_TOP = (components, logs, pipes, outside, spouts, bolts, streams, topologies)
#: What each module offers: the modules of ours that stand for it.
_MODULES: dict[str, tuple[ModuleType, ...]] = {
    "streamparse": _TOP,
    "streamparse.bolt": (bolts, outside),
    "streamparse.spout": (spouts, outside),
    "streamparse.component": (components, logs),
    "streamparse.storm": _TOP,
    "streamparse.storm.bolt": (bolts, outside),
    "streamparse.storm.spout": (spouts, outside),
    "streamparse.storm.component": (components, logs),
    "streamparse.dsl": (streams, topologies, specs),
    "streamparse.dsl.bolt": (bolts, outside),
    "streamparse.dsl.spout": (spouts, outside),
    "streamparse.dsl.stream": (streams,),
    "streamparse.dsl.topology": (topologies,),
    "streamparse.dsl.component": (specs,),
    "streamparse.thrift": (specs, streams),
    "pystorm": _TOP,
    "pystorm.bolt": (bolts, components),
    "pystorm.spout": (spouts, components),
    "pystorm.component": (components, logs),
    "pystorm.exceptions": (pipes,),
}


def install(own: bool = False) -> list[str]:
    """Put our modules in place of packages that are not there; gives the names of these.

    With ``own`` ours are taken even where a package is installed.
    """
    done = []
    for package in ("streamparse", "pystorm"):
        if own or not _is_installed(package):
            done.append(package)
            for name, sources in _MODULES.items():
                if name.partition(".")[0] == package:
                    sys.modules[name] = _stand_in(name, sources)
    for name in _MODULES:
        parent, _, child = name.rpartition(".")
        if parent and parent.partition(".")[0] in done:
            setattr(sys.modules[parent], child, sys.modules[name])
    return done


def _is_installed(package: str) -> bool:
    """Say whether a package can be imported; one of which parts are missing cannot."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def is_ours(package: str) -> bool:
    """Say whether a package that was imported is only ours."""
    return getattr(sys.modules.get(package), "__thalweg__", False)


def _stand_in(name: str, sources: tuple[ModuleType, ...]) -> ModuleType:
    module = ModuleType(name, f"Stands for {name}, with the classes of thalweg.storm.")
    for source in sources:
        public = {n: v for n, v in vars(source).items() if not n.startswith("_")}
        vars(module).update(public)
    vars(module).update(__path__=[], __thalweg__=True, __version__="0 (thalweg)")
    return module
