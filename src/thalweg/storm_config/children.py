"""What a configuration says about components in other languages."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from thalweg.multilang.bolts import ShellBolt
from thalweg.multilang.settings import Shell
from thalweg.multilang.spouts import ShellSpout
from thalweg.storm_config.config import StormConfig
from thalweg.topology import Component


def with_child(config: StormConfig, component: Component) -> Component:
    """Give a component that is a program of its own the settings of its child."""
    body = component.body
    if not isinstance(body, ShellBolt | ShellSpout):
        return component
    changed = copy.copy(body)
    changed.shell = replace(body.shell, **_settings(config, body.shell))
    changed.shell.check()
    return replace(component, body=changed)


def _settings(config: StormConfig, shell: Shell) -> Mapping[str, Any]:
    """Give what the configuration says; what the component says of its own counts more."""
    said = {
        "serializer": config.serializer,
        "timeout": config.subprocess_timeout,
        "max_pending": config.shellbolt_max_pending,
        "restarts": config.restarts,
        "linger": config.linger,
        "most_held": config.most_held,
        "most_bytes": config.most_bytes,
    }
    found = {
        name: value for name, value in said.items() if value is not None and name not in shell.said
    }
    env = {name: str(value) for name, value in config.environment.items()} | dict(shell.env)
    return found | {"env": env, "config": {**config.values, **shell.config}}
