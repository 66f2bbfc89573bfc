"""The topology builder, in Storm's manner.

>>> from thalweg.components import Bolt, Spout
>>> class Words(Spout):
...     outputs = ["word"]
>>> class Count(Bolt):
...     outputs = ["word", "n"]
...     def process(self, t): ...
>>> builder = TopologyBuilder("wordcount")
>>> builder.add_spout("words", Words(), degree=2)
>>> builder.add_bolt("count", Count(), degree=4).fields("words", "word")
Reads('count', [fields(word) on 'words'])
>>> [component.name for component in builder.build()]
['words', 'count']
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from thalweg import groupings, validation
from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import AnyBody, BlockBolt, BlockSpout, Bolt, Spout
from thalweg.config import Options, Quality
from thalweg.errors import TopologyError, explain, shorten
from thalweg.execution import Validator, validate
from thalweg.groupings import CustomGrouping, Grouping, describe
from thalweg.schemas import Fields, fields
from thalweg.topology import Component, Input, Topology


@dataclass
class _Draft:
    name: str
    body: AnyBody
    options: dict[str, Any]
    inputs: list[Input] = field(default_factory=list)

    def component(self) -> Component:
        options = Options.of(self.options, f"component {self.name!r}")
        outputs = MappingProxyType(body_outputs(self.body))
        return Component(self.name, self.body, options, tuple(self.inputs), outputs)


class TopologyBuilder:
    """Collects components; ``build`` checks them and freezes the topology.

    ``quality`` says how soon results have to come, and what may be given up. ``validator`` looks at
    the topology that is built, and gives None, or what is wrong with it.
    """

    def __init__(
        self, name: str, *, quality: Quality | None = None, validator: Validator | None = None
    ) -> None:
        self.name = _checked_name("topology", name)
        self._quality, self._validator = _checked_quality(name, quality), validator
        self._drafts: dict[str, _Draft] = {}

    def add_spout(self, name: str, spout: AnyBody, *, fields: Any = None, **options: Any) -> None:
        """Add a source; options are those of :class:`thalweg.config.Options`.

        ``fields`` says what it gives where the source itself does not know.
        """
        discover = getattr(spout, "discover_fields", None)
        if fields is None and discover is not None and not body_outputs(spout):
            fields = discover()
        if fields is not None and isinstance(spout, Spout | BlockSpout):
            spout = copy.copy(spout)
            spout.outputs = fields
        self._add(name, spout, (Spout, BlockSpout), options)

    def outputs(self, name: str) -> dict[str, Fields]:
        """Give the output streams of a component that was added."""
        return body_outputs(self._drafts[name].body)

    def add_bolt(self, name: str, bolt: AnyBody, **options: Any) -> Reads:
        """Add an operator or sink; say what it reads on the value that is returned."""
        return Reads(self._add(name, bolt, (Bolt, BlockBolt), options))

    def free_name(self, wanted: str) -> str:
        """Make a name that no component has yet: map-1, map-2."""
        numbered = (f"{wanted}-{i}" for i in range(1, len(self._drafts) + 2))
        return next(name for name in numbered if name not in self._drafts)

    def tells_time(self, name: str) -> bool:
        """Say whether a component, or one before it, is a source with a time."""
        seen, left = {name}, [name]
        while left:
            draft = self._drafts[left.pop()]
            if draft.options.get("time") is not None:
                return True
            before = {input_.component for input_ in draft.inputs} - seen
            seen |= before
            left += before
        return False

    def build(self) -> Topology:
        """Check everything and freeze it."""
        components = [draft.component() for draft in self._drafts.values()]
        validation.check(self.name, components)
        arranged = validation.arrange(self.name, components)
        orders = validation.orders(arranged)
        topology = Topology(
            self.name,
            tuple(
                replace(c, inputs=tuple(replace(i, order=orders[c.name, i]) for i in c.inputs))
                for c in arranged
            ),
            self._quality,
        )
        if self._validator is not None:
            validate(self._validator, topology)
        return topology

    def _add(
        self, name: str, body: AnyBody, kinds: tuple[type, ...], options: dict[str, Any]
    ) -> _Draft:
        _checked_name("component", name)
        if name in self._drafts:
            raise TopologyError(
                explain(f"component {name!r}", expected="each name once", got="twice")
            )
        if not isinstance(body, kinds):
            hint = "pass an object, not its class" if isinstance(body, type) else ""
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise TopologyError(
                explain(f"component {name!r}", expected=f"a {wanted}", got=shorten(body), hint=hint)
            )
        Options.checked(options, f"component {name!r}")
        draft = self._drafts[name] = _Draft(name, body, dict(options))
        return draft


def _checked_name(what: str, name: str) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise TopologyError(
            explain(f"{what} name {name!r}", expected="letters, digits, '_', '-' or '.'")
        )
    return name


def _checked_quality(name: str, quality: Quality | None) -> Quality | None:
    if quality is not None and not isinstance(quality, Quality):
        text = explain(f"quality of {name!r}", expected="a Quality(...)", got=shorten(quality))
        raise TopologyError(text)
    return quality


def body_outputs(body: AnyBody) -> dict[str, Fields]:
    """Read the output streams that a body declares."""
    default = fields(body.outputs)
    streams = {DEFAULT_STREAM: default} if len(default) else {}
    return streams | {name: fields(spec) for name, spec in body.streams.items()}


class Reads:
    """What a bolt reads: one call per stream, chained."""

    def __init__(self, draft: _Draft) -> None:
        self._draft = draft

    def __repr__(self) -> str:
        shown = ", ".join(f"{describe(i.grouping)} on {str(i)!r}" for i in self._draft.inputs)
        return f"Reads({self._draft.name!r}, [{shown}])"

    def grouping(self, component: str, grouping: Grouping, stream: str = DEFAULT_STREAM) -> Reads:
        """Read a stream with any grouping value."""
        self._draft.inputs.append(Input(component, stream, grouping))
        return self

    def shuffle(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Take tuples in turn with the other tasks."""
        return self.grouping(component, groupings.Shuffle(), stream)

    def fields(
        self,
        component: str,
        *names: str,
        stream: str = DEFAULT_STREAM,
        bounds: tuple[Any, ...] = (),
    ) -> Reads:
        """Take all tuples with the same values of these fields."""
        _need_names("fields", names)
        return self.grouping(component, groupings.Fields(names, tuple(bounds)), stream)

    def partial_key(
        self,
        component: str,
        *names: str,
        stream: str = DEFAULT_STREAM,
        choices: groupings.Choices = 2,
    ) -> Reads:
        """Share each key between two tasks; ``choices="heavy"``: heavy ones among more."""
        _need_names("partial_key", names)
        return self.grouping(component, groupings.PartialKey(names, choices), stream)

    def local_or_shuffle(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Take tuples from senders at the same place first."""
        return self.grouping(component, groupings.LocalOrShuffle(), stream)

    def all(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Let every task take every tuple."""
        return self.grouping(component, groupings.All(), stream)

    def global_(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Let the first task take everything."""
        return self.grouping(component, groupings.Global(), stream)

    def direct(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Let the sender choose the task."""
        return self.grouping(component, groupings.Direct(), stream)

    def none(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Take tuples in any way."""
        return self.grouping(component, groupings.NoGrouping(), stream)

    def load_aware(self, component: str, *, stream: str = DEFAULT_STREAM) -> Reads:
        """Take tuples by estimated work."""
        return self.grouping(component, groupings.LoadAware(), stream)

    def custom(
        self, component: str, rule: CustomGrouping, *, stream: str = DEFAULT_STREAM
    ) -> Reads:
        """Take tuples as an object of yours says."""
        return self.grouping(component, groupings.Custom(rule), stream)


def _need_names(what: str, names: tuple[str, ...]) -> None:
    if not names:
        raise TopologyError(explain(f".{what}(...)", expected="the names of the key fields"))
