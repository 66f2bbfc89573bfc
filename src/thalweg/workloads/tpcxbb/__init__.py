"""Streams, side tables and answers after five queries of the TPCx-BB benchmark.

The tables are made here from public facts; results are no TPCx-BB results. What the queries mean
is in :mod:`.queries`, their answers by DuckDB in :mod:`.answers`, the steps that cost most in
:mod:`.kernels`, the steps without state in :mod:`.first_steps`, and whole topologies in
:mod:`.topologies`.

>>> import thalweg as tw
>>> flow = tw.Flow("sales")
>>> lines = flow.source("sales", store_sales(scale=0.01, seed=7))
>>> counts = lines.filter(tw.col("ss_store_sk") == 10).key_by("ss_item_sk").count("sold")
>>> sum(flow.run(on="inline").table("sold").values())
730
"""

from thalweg.workloads.tpcxbb.sources import (
    Generated,
    batches,
    store_sales,
    table,
    web_clickstreams,
    write_tables,
)
from thalweg.workloads.tpcxbb.tables import item, web_page

__all__ = [
    "Generated",
    "batches",
    "item",
    "store_sales",
    "table",
    "web_clickstreams",
    "web_page",
    "write_tables",
]
