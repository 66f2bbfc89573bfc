"""``--config``: a YAML file with Storm's keys, applied to a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.loading import load
from thalweg.cli.showing import error_console
from thalweg.config import setting
from thalweg.errors import UsageError
from thalweg.storm_config import Configured, configured, read_config


@dataclass(frozen=True)
class Given:
    """What the program and its run are given; each field is an option of the command."""

    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A value for the program; may be repeated."
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE.yaml", help="A configuration with Storm's keys."),
    ] = None

    def apply(self, target: str, on: Any, quiet: bool) -> Configured:
        """Load a topology, and say which keys change nothing."""
        try:
            named = dict(map(setting, self.settings or ()))
        except UsageError as error:  # a mistake in the command
            raise typer.BadParameter(str(error)) from error
        # The configuration first: the topology may take long to load.
        config = None if self.config is None else read_config(self.config)
        topology = load(target, named)
        if config is None:
            return Configured(topology, on, {"settings": named})
        made = configured(config, topology, on, named)
        for note in made.notes if not quiet else ():
            error_console().print(f"{self.config}: {note}", markup=False, soft_wrap=True)
        return made
