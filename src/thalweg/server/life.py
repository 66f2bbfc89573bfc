"""The life of a topology on a server, as values: what is wanted, what was seen, what to do next.

Nothing here reads a clock or touches a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from thalweg.errors import UsageError, explain, shorten

Phase = Literal["running", "waiting", "killing", "killed", "ended", "failed"]
Order = Literal["nothing", "start", "stop", "force"]
#: Phases in which nothing runs and nothing will by itself.
OVER: frozenset[Phase] = frozenset({"killed", "ended", "failed"})
#: Tasks of a component that can be asked for from outside: each costs memory, whatever it does.
MOST_TASKS = 1024


class Refusal(UsageError):
    """Something that a server does not do; ``status`` is HTTP's word for why."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def check_degrees(degrees: Mapping[str, int]) -> None:
    """Refuse degrees that no component should have; which ones there are is not looked at."""
    for name, degree in degrees.items():
        if not 1 <= degree <= MOST_TASKS:
            subject, got = f"degree of {name[:80]!r}", shorten(degree, 40)
            raise Refusal(explain(subject, "", f"1 to {MOST_TASKS}", got))


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to run."""

    file: str
    #: A name in the file; None where there is only one topology.
    target: str | None = None
    settings: dict[str, str] = {}
    #: A file of settings for the run.
    config: str | None = None
    # --- of topologies of Storm's world only ---
    #: Which of a component's degrees, and whose options in the project's config.json.
    environment: str | None = None
    #: Degrees by component.
    par: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = {}
    #: How children are spoken with; None for what the project says.
    serializer: str | None = None


class Record(msgspec.Struct, frozen=True):
    """What is wanted of a topology, and how far it has come; kept on disk."""

    name: str
    program: Program
    submitted: float
    phase: Phase = "running"
    #: Whether its sources are to be asked.
    active: bool = True
    #: When it was started last; None when it has to be started.
    launched: float | None = None
    #: Whether its tuples have flowed once, so that an error is none of the program's description.
    proven: bool = False
    #: Times that it died in a row.
    failures: int = 0
    #: It is not started before that.
    not_before: float = 0.0
    #: When it is to end, while it is killed.
    kill_at: float | None = None
    #: How it died last.
    error: str = ""
    #: Who decides about its degrees; None until somebody says.
    policy: str | None = None
    #: Who said so.
    policy_by: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing runs, and nothing will by itself."""
        return self.phase in OVER


class Outcome(msgspec.Struct, frozen=True):
    """How a runner says it has ended: *refused* is before any tuple has flowed."""

    how: Literal["ended", "stopped", "refused", "failed"]
    error: str = ""


@dataclass(frozen=True)
class Seen:
    """What a look at a topology's process has shown."""

    alive: bool
    #: Whether its tuples flow.
    running: bool = False
    #: What it said when it ended; None where it had no time to.
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Rules:
    """How a server treats topologies that die, in seconds; each field is a promise in the docs."""

    #: Restarts in a row.
    restarts: int = 5
    #: Before the first restart; it doubles each time.
    delay: float = 1.0
    longest_delay: float = 60.0
    #: A run that has lasted so long has not died in a row with the one before.
    healthy: float = 60.0
    #: Between asking a run to end and ending it.
    grace: float = 30.0
    #: Topologies at a time.
    most: int = 32

    def backoff(self, failures: int) -> float:
        """Say how long to wait after so many deaths in a row.

        >>> [Rules().backoff(failures) for failures in (1, 2, 3, 10)]
        [1.0, 2.0, 4.0, 60.0]
        """
        return min(self.delay * 2.0 ** min(failures - 1, 30), self.longest_delay)


@dataclass(frozen=True)
class Step:
    """What comes next: the record from now on, what to do, and why."""

    record: Record
    order: Order = "nothing"
    reason: str = ""


def step(record: Record, seen: Seen, now: float, rules: Rules) -> Step:
    """Decide what comes next for a topology.

    >>> made = Record("shop", Program("shop.py"), submitted=0.0)
    >>> step(made, Seen(alive=False), 5.0, Rules()).order
    'start'
    """
    if record.over:
        return Step(record)
    if record.phase == "killing":
        return _bring_down(record, seen, now, rules)
    return (
        _note_health(record, seen, now, rules)
        if seen.alive
        else _bring_up(record, seen, now, rules)
    )


def _note_health(record: Record, seen: Seen, now: float, rules: Rules) -> Step:
    proven = record.proven or seen.running
    lasted = seen.running and now - (record.launched or now) >= rules.healthy
    failures = 0 if lasted else record.failures
    return Step(msgspec.structs.replace(record, phase="running", proven=proven, failures=failures))


def _bring_up(record: Record, seen: Seen, now: float, rules: Rules) -> Step:
    """Start what is not there, unless it has come to its end or dies again and again."""
    if record.launched is None:
        if now < record.not_before <= now + rules.longest_delay:  # unless clocks were changed
            return Step(record)
        started = msgspec.structs.replace(record, phase="running", launched=now)
        return Step(started, "start", "it is to run")
    how = "" if seen.outcome is None else seen.outcome.how
    if how == "ended":
        return Step(msgspec.structs.replace(record, phase="ended"), reason="its sources have ended")
    if how == "stopped":
        started = msgspec.structs.replace(record, launched=now)
        return Step(started, "start", "it was stopped, and is to run")
    error = seen.outcome.error if seen.outcome else "its process ended without a word"
    failures = record.failures + 1
    died = msgspec.structs.replace(record, launched=None, failures=failures, error=error)
    if how == "refused" and not record.proven:
        return Step(msgspec.structs.replace(died, phase="failed"), reason="it cannot begin")
    if failures > rules.restarts:
        reason = f"it died {failures} times in a row"
        return Step(msgspec.structs.replace(died, phase="failed"), reason=reason)
    delay = rules.backoff(failures)
    waiting = msgspec.structs.replace(died, phase="waiting", not_before=now + delay)
    return Step(waiting, reason=f"it died; restart {failures} of {rules.restarts} in {delay:g} s")


def _bring_down(record: Record, seen: Seen, now: float, rules: Rules) -> Step:
    """End what is to be killed: asked first, and forced when that takes too long."""
    if not seen.alive:
        return Step(msgspec.structs.replace(record, phase="killed"), reason="nothing runs any more")
    late = now - (record.kill_at or 0.0)
    if late < 0:
        return Step(record)
    if late < rules.grace:
        return Step(record, "stop", "its time is over")
    return Step(record, "force", f"it did not end in {rules.grace:g} s")


def revived(record: Record) -> Record:
    """Give what a new server makes of a record: what is not there is started at once."""
    return msgspec.structs.replace(record, launched=None) if not record.over else record


def submitted(before: Record | None, new: Record) -> Record:
    """Take in a topology; a name is free again when the topology that had it is over."""
    if before is not None and not before.over:
        hint = f"choose another one with --name, or: thalweg server kill {new.name}"
        text = explain(f"name {new.name!r}", "", "one that no topology has", before.phase, hint)
        raise Refusal(text, 409)
    return new


def killed(record: Record, wait: float, now: float) -> Record:
    """Let a topology end: its sources pause now, its process ends after ``wait`` seconds."""
    _check_lives(record)
    at = now + wait if record.kill_at is None else min(now + wait, record.kill_at)
    return msgspec.structs.replace(record, phase="killing", active=False, kill_at=at)


def activated(record: Record, active: bool) -> Record:
    """Let the sources of a topology be asked, or not."""
    _check_stays(record)
    return msgspec.structs.replace(record, active=active)


def led(record: Record, policy: str, by: str) -> Record:
    """Let a scaling policy decide about the degrees of a topology, also after a restart."""
    _check_stays(record)
    return msgspec.structs.replace(record, policy=policy, policy_by=by)


def _check_stays(record: Record) -> None:
    _check_lives(record)
    if record.phase == "killing":
        raise Refusal(
            explain(f"topology {record.name!r}", "", "one that runs", "one that ends"), 409
        )


def _check_lives(record: Record) -> None:
    if record.over:
        hint = "thalweg server submit starts it again, with the state it had"
        text = explain(f"topology {record.name!r}", "", "one that runs", f"{record.phase}", hint)
        raise Refusal(text, 409)
