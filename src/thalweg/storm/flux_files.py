"""Files of Flux: YAML, what it includes, and values for its ``${...}``.

Values are put in after YAML is read, each into its scalar: whatever a value holds, it adds no line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from thalweg.errors import TopologyError, UsageError, explain, shorten
from thalweg.storm.bounds import Bounds
from thalweg.storm.flux_keys import INCLUDE, check_keys

_PROPERTY = re.compile(r"\$\{([^}\n]*)\}")
#: Types that a value may have by the way it is written.
_TYPED = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null"))
_TEXT = "tag:yaml.org,2002:str"
_LISTS = ("components", "spouts", "bolts", "streams")


@dataclass(frozen=True)
class Given:
    """What is given beside a file."""

    #: Values by name; ``${ENV-NAME}`` is one of the environment.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Which files may be included; None for all.
    bounds: Bounds | None = None

    def value(self, name: str, path: Path) -> str:
        """Find the value of a property."""
        if name.startswith("ENV-"):
            found = os.environ.get(name.removeprefix("ENV-"))
        else:
            found = self.properties.get(name)
        if found is None:
            hint = f"give it with --property {name}=VALUE, or set the variable after ENV-"
            subject = f"property ${{{name}}} in {path}"
            raise UsageError(explain(subject, expected="a value", hint=hint))
        return found


def read_files(path: Path, given: Given, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read a file and those that it includes; what stands in the file itself counts more."""
    if path.resolve() in seen:
        raise TopologyError(explain(f"includes of {path}", expected="files that do not go round"))
    own = _checked(_parsed(path, given), path)
    for include in own.pop("includes", None) or []:
        if not isinstance(include, Mapping) or not isinstance(include.get("file"), str):
            got = shorten(include, 80)
            raise TopologyError(explain(f"includes of {path}", "", "entries '- file: NAME'", got))
        check_keys(include, INCLUDE, f"includes of {path}")
        found = path.parent / include["file"]
        if given.bounds is not None and not given.bounds.reach(found):
            expected = "a file below the folders whose programs may be run"
            raise UsageError(explain(f"includes of {path}", "", expected, str(found)))
        other = read_files(found, given, (*seen, path.resolve()))
        own = _joined(own, other, bool(include.get("override", False)))
    return own


def _parsed(path: Path, given: Given) -> Any:
    where = f"file {str(path)!r}"
    try:
        with path.open(encoding="utf-8") as file:
            return _loaded(file.read(), lambda name: given.value(name, path))
    except OSError as error:
        raise UsageError(explain(where, "", "a Flux file", str(error))) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        got = " ".join(str(error).split())
        raise TopologyError(explain(where, "", "YAML", got)) from error


def _loaded(text: str, value: Callable[[str], str]) -> Any:
    """Read YAML, and put values in.

    >>> _loaded("{n: ${n}, text: '${n}', both: a-${n}}", {"n": "2"}.__getitem__)
    {'n': 2, 'text': '2', 'both': 'a-2'}
    """
    marks = Marks(text)
    loader = yaml.SafeLoader(marks.text)
    try:
        node = loader.get_single_node()
        for scalar in _scalars(node):
            if marks.found.search(scalar.value):
                _put_in(loader, scalar, marks, value)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


class Marks:
    """A text with a plain word in place of each property: braces mean something in YAML.

    >>> marks = Marks("[a, ${b}]")
    >>> marks.text, marks.names
    ('[a, property0z]', ['b'])
    """

    def __init__(self, text: str) -> None:
        word = "property"
        while word in text:
            word += "x"
        self.names: list[str] = []
        self.text = _PROPERTY.sub(lambda found: self._mark(word, found[1]), text)
        self.found = re.compile(rf"{word}(\d+)z")

    def _mark(self, word: str, name: str) -> str:
        self.names.append(name)
        return f"{word}{len(self.names) - 1}z"


def _scalars(node: Any) -> list[yaml.ScalarNode]:
    """Find the scalars of a document, each once: an alias stands for the same node."""
    found, waiting, seen = list[yaml.ScalarNode](), [node], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, yaml.ScalarNode):
            found.append(each)
        elif isinstance(each, yaml.SequenceNode):
            waiting += each.value
        elif isinstance(each, yaml.MappingNode):
            waiting += [part for pair in each.value for part in pair]
    return found


def _put_in(
    loader: Any, scalar: yaml.ScalarNode, marks: Marks, value: Callable[[str], str]
) -> None:
    """Put values into a scalar; one that is nothing but a value has the type of that."""
    alone = scalar.style is None and marks.found.fullmatch(scalar.value)
    scalar.value = marks.found.sub(lambda at: value(marks.names[int(at[1])]), scalar.value)
    tag = loader.resolve(yaml.ScalarNode, scalar.value, (True, False)) if alone else _TEXT
    scalar.tag = tag if tag in _TYPED else _TEXT


def _checked(told: Any, path: Path) -> dict[str, Any]:
    """Refuse what has not the form of a Flux file."""
    if not isinstance(told, dict):
        raise TopologyError(explain(f"file {str(path)!r}", "", "a Flux topology", shorten(told)))
    for key in (*_LISTS, "includes"):
        if not isinstance(told.get(key), list | None):
            expected, hint = "a list", "write one entry per line, '- ' before each"
            subject = f"{key!r} in {path}"
            raise TopologyError(explain(subject, "", expected, shorten(told[key], 80), hint))
    if not isinstance(told.get("config"), dict | None):
        hint = "lines as topology.workers: 2"
        got = shorten(told["config"], 80)
        raise TopologyError(explain(f"'config' in {path}", "", "keys with values", got, hint))
    return told


def _joined(own: dict[str, Any], other: dict[str, Any], override: bool) -> dict[str, Any]:
    """Put an included topology beside this one; with ``override`` its config counts more."""
    first, last = (own, other) if override else (other, own)
    config = {**(first.get("config") or {}), **(last.get("config") or {})}
    lists = {
        key: [*(other.get(key) or []), *(own.get(key) or [])]
        for key in _LISTS
        if other.get(key) or own.get(key)
    }
    return {**other, **own, **lists, "config": config}
