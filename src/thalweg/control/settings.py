"""Every knob of locality-aware routing."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.sketches.assignment import Tree
from thalweg.sketches.partition import Engine


@dataclass(frozen=True)
class LocalitySettings:
    """When to reroute, and how tables are made."""

    #: Most that a place may get, against the mean of its component.
    alpha: float = 1.03
    #: Seconds in which a reroute has to pay.
    horizon: float = 600.0
    #: Bytes saved within the horizon for each byte of state to move, at least.
    gain: float = 1.0
    #: Share of the tuples that must become local in addition, at least.
    points: float = 0.02
    #: A fall of the worst imbalance that pays as well, if locality falls by less than ``points``.
    balance: float = 0.2
    #: Pairs that must have been seen, held out and not, before anything is decided.
    evidence: float = 100.0
    #: Pairs that tables are made from, the heaviest ones; bounds the keys in a table.
    edges: int = 1_000_000
    #: Pairs kept of each link when statistics are merged.
    capacity: int = 1_000_000
    #: Whether keys are placed with their partners between decisions.
    adopts: bool = True
    #: Most that a place may get through that, against the mean.
    alpha_adopt: float = 1.3
    seed: int = 1
    engine: Engine = "metis"
    #: How places are nested (racks of hosts of processes); None when all are equally far.
    tree: Tree | None = None
    #: Keys to report that are too heavy for any place, at most.
    heaviest: int = 10
