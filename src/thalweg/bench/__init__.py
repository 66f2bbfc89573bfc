"""Benchmarks: each measures Thalweg and its references in the same run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.bench import (
    elastic,
    elastic_real,
    inline_wordcount,
    latency,
    locality_cluster,
    locality_moves,
    locality_real,
    ordered_figures,
    processes,
    spark_cluster,
    spark_floor,
    spark_growth,
    spark_state,
    wordcount,
)

#: A benchmark takes (quick, report), some also a dataclass of options; it returns name,
#: environment, results and summary.
Bench = Callable[..., dict[str, Any]]

BENCHES: dict[str, Bench] = {
    "elastic": elastic.elastic,
    "elastic-real": elastic_real.elastic_real,
    "inline-wordcount": inline_wordcount.run,
    "latency": latency.run,
    "locality-cluster": locality_cluster.locality_cluster,
    "locality-local": locality_cluster.locality_local,
    "locality-real": locality_real.locality_real,
    "locality-moves": locality_moves.locality_moves,
    "ordered": ordered_figures.run,
    "processes": processes.run,
    "spark-cluster": spark_cluster.spark_cluster,
    "spark-floor": spark_floor.spark_floor,
    "spark-growth": spark_growth.spark_growth,
    "spark-state": spark_state.spark_state,
    "wordcount": wordcount.run,
}
