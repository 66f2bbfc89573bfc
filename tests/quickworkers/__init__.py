"""Spark's Python workers in tests: they begin at once."""

from __future__ import annotations

from pathlib import Path

#: The folder that a daemon finds its module in.
FOLDER = Path(__file__).parent


def worker_settings() -> dict[str, str]:
    """Give settings of Spark with which its daemon is the one of this folder."""
    return {
        "spark.python.daemon.module": "quickdaemon",
        "spark.executorEnv.PYTHONPATH": str(FOLDER),
    }
