"""``thalweg sql``: a query on files and streams, run like any topology."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, get_args

import typer

from thalweg.cli.query_fields import FORMAT, Types, check_types, file_fields, types_in
from thalweg.cli.query_sources import is_endless, stream_source
from thalweg.cli.query_times import Timing, source_times
from thalweg.config import OnError, dead_letter, on_error
from thalweg.connectors import stdout
from thalweg.connectors.files import Files
from thalweg.connectors.table_files import TableFile
from thalweg.errors import UsageError, explain, meant
from thalweg.flow import Flow
from thalweg.operators.windowing import TimeWindows
from thalweg.schemas import Fields
from thalweg.schemas import fields as fields_of
from thalweg.sql.compiling import compiled
from thalweg.topology import Topology
from thalweg.windows.specs import whole

#: Seconds between looks at the file of a table.
_RELOAD = 1.0


class ResultFormat(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"
    TABLE = "table"


@dataclass(frozen=True)
class QueryOptions:
    """What a query is about; each field is an option of the command."""

    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILES",
            help="A stream: files, a folder, a pattern, kafka://HOST:PORT/TOPIC, "
            "socket://HOST:PORT or, to listen there, http://HOST:PORT/PATH.",
        ),
    ] = None
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="A table to JOIN with; may be repeated."),
    ] = None
    types: Annotated[
        str,
        typer.Option(
            metavar="FIELD:TYPE,...", help="Types of fields, or of one source's: NAME.FIELD:TYPE."
        ),
    ] = ""
    time: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FIELD", help="The field that says when something happened; of a source."
        ),
    ] = None
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT", help="What numbers in it count: s (without it), ms, us or ns."
        ),
    ] = ""
    idle: Annotated[
        str, typer.Option(metavar="TIME", help="A silent source keeps nobody waiting after this.")
    ] = ""
    delay: Annotated[
        str, typer.Option(metavar="TIME", help="How late a tuple may come, as '10 s'.")
    ] = ""
    tail: Annotated[
        str, typer.Option(metavar="TIME", help="Look for new lines and files, as '1 s'.")
    ] = ""
    on_error: Annotated[
        str,
        typer.Option(
            metavar="fail|skip|FILE.jsonl",
            help="Whether what cannot be read or computed ends the query, is left out, or kept.",
        ),
    ] = "fail"
    format: Annotated[ResultFormat, typer.Option(help="How results are printed.")] = (
        ResultFormat.TEXT
    )


def waits_for(topology: Topology) -> str:
    """Say what the answer to a query waits for where that may never come; else nothing."""
    grouped = any(isinstance(c.body, TimeWindows) and c.body.what.spec == whole() for c in topology)
    if not (grouped and any(is_endless(c.body) for c in topology.spouts)):
        return ""
    return (
        "a query without a window is answered when its input ends, or with Ctrl-C; "
        "say WINDOW TUMBLING 1 MINUTE to have answers meanwhile"
    )


def query_topology(query: str, how: QueryOptions) -> Topology:
    """Make a topology of a query; its results are printed."""
    types = types_in(how.types)
    of_source, of_table = _pairs(how)
    streams = {name: _stream(name, what, types, how) for name, what in of_source.items()}
    tables = {name: _table(name, file, types) for name, file in of_table.items()}
    if not streams and not tables:
        raise UsageError(explain("query", expected="--source NAME=FILES", got="no source"))
    fields = {name: known for name, (_, known) in streams.items()}
    check_types(types, fields | {name: table.fields for name, table in tables.items()})
    timing = Timing(how.time or [], how.unit, how.delay, how.idle)
    times, flow = source_times(timing, fields), Flow("sql")
    sources: dict[str, Any] = {
        name: flow.source(name, source, fields=known, time=times.get(name))
        for name, (source, known) in streams.items()
    }
    compiled(query, sources | tables).sink("print", stdout(how.format.value), order="total")
    return _tolerant(flow.build(), how.on_error)


def _tolerant(topology: Topology, policy: str) -> Topology:
    """Give all components a policy for what cannot be processed."""
    words, end = get_args(get_args(OnError)[0]), ".jsonl"
    if policy not in words and not policy.endswith(end):
        expected, hint = f"one of {words} or FILE{end}", meant(policy, words)
        raise UsageError(explain("--on-error", "", expected, repr(policy), hint))
    chosen = on_error(policy if policy in words else dead_letter(policy))
    components = (replace(c, options=replace(c.options, on_error=chosen)) for c in topology)
    return replace(topology, components=tuple(components))


def _stream(name: str, what: str, types: Types, how: QueryOptions) -> tuple[Any, Fields]:
    source = stream_source(what, types.of(name), how.tail)
    if isinstance(source, Files):
        return source, file_fields(name, source.present(), types)
    # Messages of Kafka have more than what is in their values.
    return source, fields_of(source.outputs or types.of(name))


def _table(name: str, file: str, types: Types) -> TableFile:
    return TableFile(os.path.abspath(file), FORMAT, file_fields(name, [file], types), _RELOAD)


def _pairs(how: QueryOptions) -> tuple[dict[str, str], dict[str, str]]:
    """Read the names of sources and of tables; no two have the same."""
    made: dict[str, dict[str, str]] = {"source": {}, "table": {}}
    for option, given in (("source", how.source), ("table", how.table)):
        for text in given or ():
            name, _, what = text.partition("=")
            if not name.isidentifier() or not what:
                raise UsageError(explain(f"--{option}", "", "NAME=FILES", f"{name}={what}"))
            first = made["source"].get(name) or made["table"].get(name)
            if first:
                expected = f"one source or table {name!r}"
                raise UsageError(explain(f"--{option}", "", expected, f"{first}, {what}"))
            made[option][name] = what
    return made["source"], made["table"]
