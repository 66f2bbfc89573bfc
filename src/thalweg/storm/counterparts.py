"""Python classes that do what some of Flux's own components of Java do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from thalweg.storm.bolts import Bolt
from thalweg.storm.components import Tuple


class LogInfoBolt(Bolt):
    """Logs each tuple."""

    stateless: ClassVar[bool] = True

    def process(self, tup: Tuple) -> None:
        """Log one tuple, as Storm writes tuples."""
        values = ", ".join(map(str, tup.values))
        text = "source: %s:%s, stream: %s, id: %s, [%s]"
        self.logger.info(text, tup.component, tup.task, tup.stream, tup.id, values)


#: By the name of the class of Java's.
COUNTERPARTS: Mapping[str, str] = {
    "org.apache.storm.flux.wrappers.bolts.LogInfoBolt": f"{__name__}.{LogInfoBolt.__name__}"
}
