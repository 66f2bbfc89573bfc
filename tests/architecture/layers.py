"""The layers of the package, as data. A module may import from its own layer and from lower ones.

A name stands for a module or a package of ``thalweg`` with everything in it; ``""`` is the root.
"""

from __future__ import annotations

#: From the bottom to the top.
LAYERS: dict[str, tuple[str, ...]] = {
    "values and algorithms": (
        "blocks",
        "clock",
        "codecs",
        "columns",
        "config",
        "errors",
        "events",
        "expressions",
        "hashing",
        "keys",
        "metrics",
        "schemas",
        "sketches",
        "tuples",
        "version",
        "weights",
    ),
    "describing": (
        "builder",
        "components",
        "execution",
        "flow",
        "groupings",
        "operators",
        "topology",
        "validation",
    ),
    "data-plane rules": (
        "acking",
        "connectors",
        "ordering",
        "placement",
        "routing",
        "state",
        "statelog",
        "workloads",
    ),
    "policies and protocols": ("control", "migration"),
    "runtimes": ("runtimes",),
    "what people touch": ("", "__main__", "bench", "cli", "dashboard", "drawing", "testing"),
}

#: Designed, not written yet.
PLANNED = frozenset({"dashboard"})

#: Layers that describe: they import nothing that runs, not even from elsewhere.
DESCRIBING = ("values and algorithms", "describing")
THINGS_THAT_RUN = frozenset(
    {"asyncio", "concurrent", "lmdb", "multiprocessing", "pyspark", "socket", "subprocess"}
)
