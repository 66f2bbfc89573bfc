"""Logs of components in child processes: to Storm, or to files, as ``pystorm.log.*`` says."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO, cast

#: Storm's levels by the name of a level.
LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}
_PYTHON = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_FILE = "pystorm_{topology_name}_{component_name}_{task_id}_{pid}.log"


class StormHandler(logging.Handler):
    """Sends what is logged to Storm; ``serializer`` has ``send_message``."""

    def __init__(self, serializer: Any) -> None:
        super().__init__()
        self.serializer = serializer

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        try:
            level = LEVELS.get(record.levelname.lower(), LEVELS["info"])
            text = self.format(record)
            self.serializer.send_message({"command": "log", "msg": text, "level": level})
        except Exception:
            self.handleError(record)


class LogStream:
    """Stands for standard output, which the protocol needs: what is printed is logged."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def write(self, text: str) -> int:
        """Log what is not blank."""
        if text.strip():
            self._log(text.rstrip("\n"))
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""


def logger_of(component: str) -> logging.Logger:
    """Give the logger of a component."""
    return logging.getLogger(f"pystorm.component.{component}")


def level_of(conf: Mapping[str, Any]) -> int:
    """Read the least level that is wanted."""
    if conf.get("topology.debug"):
        return logging.DEBUG
    return _PYTHON.get(str(conf.get("pystorm.log.level", "info")).lower(), logging.INFO)


def set_up(component: Any, names: Mapping[str, Any]) -> None:
    """Let a component in a child process log; ``names`` are for the name of a file."""
    conf = component.storm_conf
    folder = conf.get("pystorm.log.path")
    handler: logging.Handler
    if folder:
        file = Path(folder) / str(conf.get("pystorm.log.file", _FILE)).format(**names)
        size = int(conf.get("pystorm.log.max_bytes", 1_000_000))
        kept = int(conf.get("pystorm.log.backup_count", 10))
        handler = RotatingFileHandler(file, maxBytes=size, backupCount=kept, encoding="utf-8")
        usual = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
    else:
        handler = StormHandler(component.serializer)
        usual = "%(asctime)s - %(name)s - %(message)s"
    level = level_of(conf)
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(conf.get("pystorm.log.format", usual)))
    logging.getLogger().addHandler(handler)
    component.logger.setLevel(level)
    logging.getLogger("pystorm").setLevel(level)


def redirect_prints() -> None:
    """Let prints be logged."""
    stream = LogStream(logging.getLogger("pystorm.stdout").info)
    sys.stdout = cast(TextIO, stream)
