"""What the elasticity benchmark amounts to: ratios between policies, and what was required."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.bench.elastic_cases import (
    AUTOSCALE,
    BALANCING,
    BURSTY,
    EXPERT,
    LOCAL,
    OURS,
    PLUS,
    SAME,
    STATIC,
    STRAIGHT,
)

Row = Mapping[str, Any]
Rows = Mapping[str, Row]

#: The six scenarios in which our own policy has to be the best.
SIX = tuple(
    f"{topology}-{stream}"
    for topology in ("insensitive", "sensitive", "complex")
    for stream in ("progressive", "erratic")
)
#: A loss that counts as none; one beyond which a run is congested; and one up to which it is not.
_NONE, _CONGESTED, _FREE = 0.001, 0.5, 0.05


def summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """Compare policies in whatever scenarios were run."""
    rows = {name: found["policies"] for name, found in results.items()}
    found = _ours({name: rows[name] for name in SIX if name in rows}) | _growing(rows)
    for name in ("linear", "diamond", "star"):
        found |= _against_static(name, rows)
    if "consistency" in rows:
        found |= _consistency(rows["consistency"])
    for name in BALANCING:
        if name in rows:
            found |= _balancing(name, rows[name])
    return found


def loss_ratio(own: float, other: float) -> float:
    """Give how many times the other's loss is lost; a loss of 0.1 % or less counts as none.

    >>> loss_ratio(0.02, 0.08), loss_ratio(0.0005, 0.0), loss_ratio(0.01, 0.0)
    (0.25, 0.0, inf)
    """
    if own <= _NONE:
        return 0.0
    return own / other if other else float("inf")


def _ours(six: Mapping[str, Rows]) -> dict[str, Any]:
    """Compare our own policy with the best of the others, and with AUTOSCALE+."""
    if not six:
        return {}
    to_best, to_plus, resources = [], [], []
    for policies in six.values():
        own, plus = policies[OURS], policies[PLUS]
        best = min(each["lost"] for label, each in policies.items() if label != OURS)
        to_best.append(loss_ratio(own["lost"], best))
        to_plus.append(loss_ratio(own["lost"], plus["lost"]))
        resources.append(own["resource_seconds"] / plus["resource_seconds"])
    return {
        "thalweg_worst_loss_ratio_to_best": max(to_best),
        "thalweg_worst_loss_ratio_to_autoscale_plus": max(to_plus),
        "thalweg_worst_resource_ratio_to_autoscale_plus": max(resources),
    }


def _growing(rows: Mapping[str, Rows]) -> dict[str, Any]:
    """Add up how often each policy took tasks away while more and more tuples waited."""
    found: dict[str, float] = {}
    for policies in rows.values():
        for label, row in policies.items():
            name = f"scale_ins_while_growing {label}"
            found[name] = found.get(name, 0.0) + row["scale_ins_while_growing"]
    return found


def _against_static(name: str, rows: Mapping[str, Rows]) -> dict[str, Any]:
    """Compare AUTOSCALE with static degrees: does it congest, and what does it save."""
    found: dict[str, Any] = {}
    if least := rows.get(f"{name}-min"):
        found[f"{name}_static_congests"] = least[STATIC]["lost"] > _CONGESTED
        found[f"{name}_autoscale_congests"] = least[AUTOSCALE]["lost"] >= _FREE
        found[f"{name}_autoscale_lost"] = least[AUTOSCALE]["lost"]
    if expert := rows.get(f"{name}-expert"):
        scaled, fixed = expert[AUTOSCALE], expert[STATIC]
        saved = 1 - scaled["resource_seconds"] / fixed["resource_seconds"]
        found[f"{name}_autoscale_saves"] = saved
        found |= _latency_ratios(name, scaled, fixed)
        both = expert[f"{AUTOSCALE}, {BURSTY}"], expert[f"{STATIC}, {BURSTY}"]
        found |= _latency_ratios(f"{name}_{BURSTY}", *both)
    return found


def _latency_ratios(name: str, scaled: Row, fixed: Row) -> dict[str, Any]:
    """Compare latencies outside of grace times: all of static's, and those of the same periods."""
    return {
        f"{name}_latency_ratio": scaled["calm_latency"] / fixed["calm_latency"],
        f"{name}_latency_ratio_same_periods": scaled["calm_latency"]
        / scaled["calm_latency_static"],
    }


def _consistency(rows: Rows) -> dict[str, Any]:
    return {
        f"consistency_lost_{name}": rows[label]["lost"]
        for name, label in (("gal", AUTOSCALE), ("straight", STRAIGHT), ("local", LOCAL))
    } | {
        f"consistency_latency_{name}": rows[label]["latency_mean"]
        for name, label in (("gal", AUTOSCALE), ("straight", STRAIGHT), ("local", LOCAL))
    }


def _balancing(name: str, rows: Rows) -> dict[str, Any]:
    """Compare OSG with round robin under AUTOSCALE+."""
    osg, shuffle = rows[f"{PLUS}, osg"], rows[f"{PLUS}, shuffle"]
    calm, calm_shuffle = rows[f"{EXPERT}, osg"], rows[f"{EXPERT}, shuffle"]
    law = name.partition("-")[2]
    return {
        f"osg_expert_deviation_ratio_{law}": calm["deviation"] / calm_shuffle["deviation"],
        f"osg_expert_latency_ratio_{law}": calm["latency_mean"] / calm_shuffle["latency_mean"],
        f"osg_deviation_ratio_{law}": osg["deviation"] / shuffle["deviation"],
        f"osg_latency_ratio_{law}": osg["latency_mean"] / shuffle["latency_mean"],
        f"osg_calm_latency_ratio_{law}": osg["calm_latency"] / shuffle["calm_latency"],
        f"osg_latency_ratio_same_changes_{law}": rows[SAME]["latency_mean"]
        / shuffle["latency_mean"],
        f"osg_queue_ratio_{law}": osg["queued"] / max(shuffle["queued"], 1e-9),
        f"in_time_static_{law}": 1 - rows[f"{STATIC}, shuffle"]["lost"],
        f"in_time_autoscale_plus_{law}": 1 - osg["lost"],
    }
