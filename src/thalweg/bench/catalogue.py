"""All benchmarks by name. It loads every one of them, so only who asks for it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.bench import (
    dashboard,
    elastic,
    elastic_real,
    inline_wordcount,
    joining,
    kafka,
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
    storm_mc,
    tpcxbb,
    wordcount,
)

#: A benchmark takes (quick, report), some also a dataclass of options; it returns name,
#: environment, results and summary.
Bench = Callable[..., dict[str, Any]]

BENCHES: dict[str, Bench] = {
    "dashboard": dashboard.run,
    "elastic": elastic.elastic,
    "elastic-real": elastic_real.elastic_real,
    "inline-wordcount": inline_wordcount.run,
    "join": joining.run,
    "kafka": kafka.run,
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
    "storm-mc": storm_mc.run,
    "tpcxbb": tpcxbb.run,
    "wordcount": wordcount.run,
}
