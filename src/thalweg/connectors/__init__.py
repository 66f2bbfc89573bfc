"""Sources and sinks that every runtime has."""

from thalweg.connectors.memory import call, collect, items

__all__ = ["call", "collect", "items"]
