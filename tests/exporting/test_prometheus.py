"""Metrics as Prometheus reads them, with its own parser."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from recording.runs import metrics, snapshot
from thalweg.exporting.prometheus import MOST_TASKS, prometheus_text
from thalweg.metrics import Snapshot


def samples(shot: Snapshot, topology: str = "words") -> dict[tuple[str, tuple[Any, ...]], float]:
    found = {}
    for family in text_string_to_metric_families(prometheus_text(shot, topology)):
        for sample in family.samples:
            assert sample.labels.pop("topology") == topology
            found[sample.name, tuple(sample.labels.values())] = sample.value
    return found


def test_every_number_is_that_of_the_snapshot() -> None:
    shot = snapshot(2.0, acked=20, failed=1, pending=7, batches=3, stickiness=0.75)
    found = samples(shot)
    assert found["thalweg_tuples_in_total", ()] == shot.tuples_in
    assert found["thalweg_tuples_out_total", ()] == shot.tuples_out
    assert found["thalweg_errors_total", ()] == shot.errors
    assert found["thalweg_acked_total", ()] == 20
    assert found["thalweg_failed_total", ()] == 1
    assert found["thalweg_pending_tuples", ()] == 7
    assert found["thalweg_batches_total", ()] == 3
    assert found["thalweg_stickiness_ratio", ()] == 0.75
    assert found["thalweg_elapsed_seconds", ()] == 2.0
    assert found["thalweg_latency_seconds", ("0.99",)] == 0.003
    assert found["thalweg_recent_latency_seconds", ("0.99", "15 s")] == 0.7
    for component in shot.components:
        name = (component.component,)
        assert found["thalweg_component_received_total", name] == component.received
        assert found["thalweg_component_emitted_total", name] == component.emitted
        assert found["thalweg_component_busy_seconds_total", name] == component.busy
        assert found["thalweg_component_degree", name] == component.degree
        assert found["thalweg_component_execute_latency_seconds", name] == 0.002
        assert found["thalweg_component_capacity_ratio", name] == 0.25
        for task, received in enumerate(component.per_task):
            assert found["thalweg_task_received_total", (*name, str(task))] == received


def test_what_a_runtime_does_not_have_is_left_out() -> None:
    bare = metrics("counts", stats={}, task_stats=())
    found = samples(snapshot(components=(bare,), latency=None, recent=None))
    names = {name for name, _ in found}
    assert "thalweg_latency_seconds" not in names
    assert "thalweg_recent_latency_seconds" not in names
    assert "thalweg_stickiness_ratio" not in names
    assert "thalweg_component_waiting_tuples" not in names
    assert "thalweg_component_capacity_ratio" not in names
    assert "thalweg_component_received_total" in names


def test_what_the_local_runtime_says_of_queues_and_order_is_told() -> None:
    told = {"blocked": 1.5, "reordered": 12, "reorder_seconds": 0.75, "head_wait": 0.25}
    found = samples(snapshot(components=(metrics("counts", **told),)))
    assert found["thalweg_component_blocked_seconds_total", ("counts",)] == 1.5
    assert found["thalweg_component_reordered_total", ("counts",)] == 12
    assert found["thalweg_component_reorder_seconds_total", ("counts",)] == 0.75
    assert found["thalweg_component_head_wait_seconds", ("counts",)] == 0.25
    bare = {name for name, _ in samples(snapshot(components=(metrics("counts"),)))}
    assert "thalweg_component_blocked_seconds_total" not in bare  # none, and not zero


def test_how_far_event_time_has_come_is_told_where_it_is_known() -> None:
    told = {"watermark": 1.7e9, "behind": 2.5, "late": 7, "dropped": 3}
    name = ("counts",)
    found = samples(snapshot(components=(metrics("counts", **told),)))
    assert found["thalweg_component_watermark_seconds", name] == 1.7e9
    assert found["thalweg_component_watermark_behind_seconds", name] == 2.5
    assert found["thalweg_component_late_total", name] == 7
    bare = {name for name, _ in samples(snapshot(components=(metrics("counts"),)))}
    assert "thalweg_component_watermark_seconds" not in bare


def test_the_number_of_labels_is_bounded() -> None:
    wide = metrics("counts", degree=5000, per_task=(1,) * 5000)
    tasks = [key for key in samples(snapshot(components=(wide,))) if "task_received" in key[0]]
    assert len(tasks) == MOST_TASKS


def test_names_are_escaped() -> None:
    found = samples(snapshot(components=(metrics('a"b\\c\nd'),)), 'odd "name"\n')
    assert found["thalweg_component_degree", ('a"b\\c\nd',)] == 2
