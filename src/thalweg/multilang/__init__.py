"""Components in other languages, over Storm's multi-language protocol."""

from thalweg.multilang.bolts import ShellBolt
from thalweg.multilang.keyed import KeyedShellBolt
from thalweg.multilang.spouts import ShellSpout

__all__ = ["KeyedShellBolt", "ShellBolt", "ShellSpout"]
