"""The layers of the package, as data. A module may import from its own layer and from lower ones.

A name stands for a module or a package of ``thalweg`` with everything in it; ``""`` is the root.
"""

from __future__ import annotations

#: From the bottom to the top.
LAYERS: dict[str, tuple[str, ...]] = {
    "values and algorithms": (
        "anyvalues",
        "blocks",
        "clock",
        "codecs",
        "columns",
        "config",
        "consumers",
        "errors",
        "events",
        "eventtime",
        "expressions",
        "foreign",
        "hashing",
        "hooks",
        "keys",
        "metrics",
        "registered",
        "schemas",
        "signals",
        "sketches",
        "stats",
        "tuples",
        "unifying",
        "version",
        "weights",
    ),
    "describing": (
        "anchored",
        "builder",
        "components",
        "contexts",
        "execution",
        "flow",
        "flowing",
        "groupings",
        "joined",
        "keyed_flow",
        "noticing",
        "operators",
        "topology",
        "validation",
        "windowed",
        "windows",
    ),
    "data-plane rules": (
        "acking",
        "connectors",
        "multilang",
        "ordering",
        "pacing",
        "placement",
        "routing",
        "state",
        "statelog",
        "strands",
        "timers",
        "watermarks",
        "workloads",
    ),
    "policies and protocols": ("control", "migration"),
    "runtimes": ("runtimes",),
    "what people touch": (
        "",
        "__main__",
        "bench",
        "cli",
        "dashboard",
        "demo",
        "drawing",
        "exporting",
        "recording",
        "server",
        "sql",
        "storm",
        "storm_config",
        "testing",
    ),
}

#: Designed, not written yet.
PLANNED: frozenset[str] = frozenset()

#: Layers that describe: they import nothing that runs, not even from elsewhere.
DESCRIBING = ("values and algorithms", "describing")
THINGS_THAT_RUN = frozenset(
    {"asyncio", "concurrent", "lmdb", "multiprocessing", "pyspark", "socket", "subprocess"}
)
