"""Files of streamparse projects: where modules are, which topology is meant, how it is set."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thalweg.errors import UsageError, explain, meant
from thalweg.storm.bounds import Bounds
from thalweg.storm.building import Hosting
from thalweg.storm.compat import install
from thalweg.storm.flux import read_flux
from thalweg.storm.plans import SERIALIZER, Plan, plan_of
from thalweg.storm_config import StormConfig

FLUX = (".yaml", ".yml")
_CONFIG = "config.json"

#: Keys of which streamparse's configuration has some.
_KEYS = frozenset(["envs", "library", "serializer", "topology_specs", "virtualenv_specs"])


@dataclass(frozen=True)
class Project:
    """A folder with topologies, components and a configuration."""

    root: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    bounds: Bounds | None = None

    @classmethod
    def around(cls, file: Path, bounds: Bounds | None = None) -> Project:
        """Find the project of a topology: the folder with streamparse's config.json.

        That is the folder of the file, or one of the two above. Nothing outside of ``bounds`` is
        looked at: whoever may write to a folder above must not decide what is run.
        """
        bounds = bounds or Bounds.around(file)
        own = file.resolve().parent
        for folder in (own, *own.parents[:2]):
            path = folder / _CONFIG
            if path.is_file() and bounds.hold(path) and _KEYS & (config := _config(path)).keys():
                return cls(folder, config, bounds)
        return cls(own, bounds=bounds)

    @property
    def modules(self) -> Path:
        """Folder of the modules of components."""
        return self._folder("src") or self.root

    @property
    def programs(self) -> Path:
        """Folder in which programs run: Storm calls it resources, streamparse makes it of src."""
        return self._folder("resources") or self.modules

    def _folder(self, name: str) -> Path | None:
        found = self.root / name
        trusted = self.bounds is None or self.bounds.hold(found)
        return found if found.is_dir() and trusted else None

    def serializer(self, environment: str | None) -> str | None:
        """How child processes are spoken with, unless something else says it."""
        said = self._environment(environment).get("serializer", self.config.get("serializer"))
        return str(said) if said else None

    def hosting(
        self,
        environment: str | None = None,
        serializer: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Hosting:
        """Say how components are run: as the command says, or else the project."""
        chosen = self.environment(environment)
        options = self.options(chosen)
        # Here, since nobody knows any more who has said what when it is put together.
        StormConfig.of(options, f"options of {chosen!r} in {self.root / _CONFIG}")
        told = {**options, **(config or {})}
        usual = None if SERIALIZER in told else self.serializer(chosen)
        return Hosting(
            serializer=serializer or usual,
            environment=chosen,
            named=environment is not None,
            folder=str(self.programs),
            config=told,
        )

    def options(self, environment: str | None) -> dict[str, Any]:
        """Give the configuration of an environment, which counts more than the topology's."""
        told = self._environment(environment)
        logs = {f"pystorm.log.{key}": value for key, value in (told.get("log") or {}).items()}
        return {key: value for key, value in logs.items() if value} | (told.get("options") or {})

    def environment(self, name: str | None) -> str | None:
        """Give the environment that is meant: without a name it is the only one, if it is one."""
        known = self.config.get("envs")
        if name is not None or not isinstance(known, Mapping) or len(known) != 1:
            return name
        return str(next(iter(known)))

    def check_environment(self, name: str | None, degrees: Iterable[Any]) -> None:
        """Refuse an environment that neither config.json nor the degree of a component knows."""
        told = [each for each in (self.config.get("envs"), *degrees) if isinstance(each, Mapping)]
        known = list(dict.fromkeys(str(key) for each in told for key in each))
        if name is not None and name not in known:
            expected = f"one of {known}" if known else "none"
            nobody = "neither envs of config.json nor par of a component has any"
            hint = meant(name, known) if known else nobody
            raise UsageError(explain(f"environment {name!r}", "", expected, hint=hint))

    def _environment(self, name: str | None) -> Mapping[str, Any]:
        known = self.config.get("envs")
        told = known.get(name) if isinstance(known, Mapping) else None
        return told if isinstance(told, Mapping) else {}


def find(path: Path) -> Path:
    """Find a topology by its name alone, in the project of the working folder."""
    if path.exists() or path.suffix or path.name != str(path):
        return path
    project = Project.around(Path.cwd() / "topology")
    folder = project.root / str(project.config.get("topology_specs") or "topologies")
    named = (folder / f"{path}{suffix}" for suffix in (".py", *FLUX))
    return next((file for file in named if file.is_file()), path)


def read_values(texts: Mapping[str, str]) -> dict[str, Any]:
    """Read values for components, each as JSON, or else as text.

    >>> read_values({"most": "3", "who": "me"})
    {'most': 3, 'who': 'me'}
    """
    return {name: _value(text) for name, text in texts.items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _config(path: Path) -> Mapping[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        expected = "streamparse's configuration"
        raise UsageError(explain(f"file {str(path)!r}", "", expected, str(error))) from error
    return told if isinstance(told, Mapping) else {}


def make_importable(file: Path, project: Project) -> None:
    """Let modules of a project be found, and streamparse itself, where it is not installed."""
    for folder in (file.resolve().parent, project.root, project.modules):
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
        sys.path.insert(0, str(folder))
    install()


def topology_classes(module: Any) -> dict[str, Any]:
    """Find the topologies of a module, by the names of their classes."""
    return {name: value for name, value in vars(module).items() if is_topology(value)}


def is_topology(value: Any) -> bool:
    """Say whether something is a topology as streamparse has them, with components."""
    own = isinstance(value, type) and hasattr(value, "to_flux_dict")
    return own and bool(getattr(value, "specs", None))


def chosen_class(module: Any, file: Path, name: str | None) -> Any:
    """Find the one topology that is meant."""
    found = topology_classes(module)
    if name is not None and name in found:
        return found[name]
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    got = f"{len(found)}: {', '.join(found)}" if found else "none"
    hint = f"say which one: {file}:{next(iter(found))}" if found else "class X(Topology): ..."
    wanted = f"a topology {name!r}" if name else "one class that derives from Topology"
    raise UsageError(explain(f"file {str(file)!r}", expected=wanted, got=got, hint=hint))


def plan_of_flux(file: Path, project: Project, properties: Mapping[str, str]) -> Plan:
    """Read a Flux file."""
    return read_flux(file, properties, project.bounds)


def plan_of_module(module: Any, file: Path, name: str | None) -> Plan:
    """Read a topology class of a module that was imported."""
    chosen = chosen_class(module, file, name)
    return plan_of(chosen, file.stem if name is None else name)
