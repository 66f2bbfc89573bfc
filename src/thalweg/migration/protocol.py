"""The protocol of a live reconfiguration: Algorithm 1 as two state machines without I/O.

A :class:`Manager` and the :class:`Task` objects exchange values; whoever runs them carries each
``(address, message)`` that one returns to the ``receive`` of another, in order per channel.

It keeps these promises, under any interleaving and when tasks or the manager restart: no tuple is
lost or processed twice; the tuples of one sender for one key are processed in order; at the end
the state of every key is at one task, the one that the new tables name; it ends.
"""

from __future__ import annotations

from thalweg.migration.lists import reconfigurations
from thalweg.migration.manager import Compute, Manager, Phase
from thalweg.migration.messages import (
    AckReconf,
    Again,
    Configuration,
    Done,
    Finish,
    GetMetrics,
    Lists,
    Message,
    Migrate,
    Piece,
    Propagate,
    Restarted,
    Resume,
    Router,
    Save,
    Saved,
    SendMetrics,
    SendReconf,
    Sent,
    States,
    Tuple,
)
from thalweg.migration.pieces import cut
from thalweg.migration.task import Host, Kept, Task
from thalweg.migration.wiring import Address, Office, TaskId, Wiring

__all__ = [
    "AckReconf",
    "Address",
    "Again",
    "Compute",
    "Configuration",
    "Done",
    "Finish",
    "GetMetrics",
    "Host",
    "Kept",
    "Lists",
    "Manager",
    "Message",
    "Migrate",
    "Office",
    "Phase",
    "Piece",
    "Propagate",
    "Restarted",
    "Resume",
    "Router",
    "Save",
    "Saved",
    "SendMetrics",
    "SendReconf",
    "Sent",
    "States",
    "Task",
    "TaskId",
    "Tuple",
    "Wiring",
    "cut",
    "reconfigurations",
]
