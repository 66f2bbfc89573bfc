"""The demo as one page: what was compared, and the report of each phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from thalweg.demo.data import Data
from thalweg.demo.findings import Finding, percent, sentences
from thalweg.demo.phases import MOST, WAIT
from thalweg.demo.playing import Played
from thalweg.drawing.charts import line_chart, steps
from thalweg.recording.markup import cell, page, table
from thalweg.recording.reading import SNAPSHOTS, Recording
from thalweg.recording.report import report_parts
from thalweg.recording.series import Lines, degrees, drawable, rates

#: What the columns are.
LEGEND = (
    "tuples/s: in the rush. shuffled: tuples that went through the exchange between the steps "
    "(Spark). locality: pairs of keys, in a sample, that are at one place. "
    "tasks: of each step, the mean."
)
HEADS = ("way", "tuples/s", "shuffled", "locality", "tasks", "reconfigured")


def row(finding: Finding) -> tuple[str, str, str, str, str, str]:
    """Give the line of a phase in the table."""
    shares = (finding.shuffled, finding.locality)
    shown = ["" if share is None else percent(share) for share in shares]
    tasks = f"{finding.tasks:.1f}".removesuffix(".0")
    rate, changes = f"{finding.rate:,.0f}", str(finding.reconfigurations)
    return finding.phase.name, rate, shown[0], shown[1], tasks, changes


def about(data: Data) -> str:
    """Say what was run."""
    first, second = data.keys
    return (
        f"A stream of {data.about}: calm, a rush as fast as it is taken, and calm again. "
        f"Two steps count it, by {first} and then by {second}, and wait {WAIT * 1e6:.0f} µs for "
        f"each tuple, as for a service. By hash each step has {MOST} tasks all the time; "
        "locality-aware, keys that occur together are brought to one place, and the number of "
        "tasks follows the load."
    )


def demo_page(data: Data, played: Sequence[Played]) -> str:
    """Write the page."""
    findings = [each.finding for each in played]
    parts = [
        "<h1>Thalweg: the demo</h1>",
        f"<p>{cell(about(data))}</p>",
        table(HEADS, map(row, findings)),
        f'<p class="note">{cell(LEGEND)}</p>',
        *(f"<p>{cell(text)}</p>" for text in sentences(findings)),
        *(part for runtime in ("spark", "local") for part in _charts(runtime, played)),
    ]
    for each in played:
        parts.append(f"<h1>{cell(each.finding.phase.name)}</h1>")
        with Recording.open(each.recording) as recording:
            parts += report_parts(recording)[1:]
    return page("Thalweg: the demo", parts)


def _charts(runtime: str, played: Iterable[Played]) -> Iterator[str]:
    """Draw both ways of a runtime over each other."""
    lines: dict[str, Lines] = {"tuples per second": {}, "tasks of the first step": {}}
    end = 0.0
    for each in played:
        if each.finding.phase.runtime != runtime:
            continue
        with Recording.open(each.recording) as recording:
            looks = list(recording.records(kinds=SNAPSHOTS))
        name, tasks = each.finding.phase.name, list(degrees(looks).values())[1]
        for title, line in zip(lines, (rates(looks)["in"], tasks), strict=True):
            lines[title][name] = line
        end = max(end, looks[-1]["at"])
    for title, both in lines.items():
        tasks_held = title.startswith("tasks")
        if drawn := drawable(both, max if tasks_held else fmean):
            hold = steps if tasks_held else list
            shown = {name: hold(points) for name, points in drawn.items()}
            chart = line_chart(title, shown, "seconds since the start", "", span=(0.0, end))
            yield f"<figure>{chart}</figure>"
