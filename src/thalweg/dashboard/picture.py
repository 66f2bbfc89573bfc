"""Where the boxes and arrows of a topology go on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.drawing.layout import Edge, Node, arrange

#: Sizes of a box, and of the text at an arrow, in pixels.
WIDTH, HEIGHT = 220.0, 122.0
_LABEL_WIDTH, _LABEL_HEIGHT = 150.0, 30.0


def picture(topology: Mapping[str, Any]) -> dict[str, Any]:
    """Lay out the record of a topology; arrows come in the order of its streams.

    >>> made = picture({
    ...     "components": [{"name": "words"}, {"name": "count"}],
    ...     "streams": [{"from": "words", "to": "count"}],
    ... })
    >>> sorted(made["boxes"]), len(made["routes"])
    (['count', 'words'], 1)
    """
    names = [component["name"] for component in topology["components"]]
    order = {name: at for at, name in enumerate(names)}
    streams = [(stream["from"], stream["to"]) for stream in topology["streams"]]
    # A file from elsewhere may say anything.
    drawn = [
        at
        for at, (source, target) in enumerate(streams)
        if source in order and target in order and order[source] < order[target]
    ]
    edges = [Edge(*streams[at], _LABEL_WIDTH, _LABEL_HEIGHT) for at in drawn]
    layout = arrange([Node(name, WIDTH, HEIGHT) for name in order], edges)
    return {
        "width": layout.width,
        "height": layout.height,
        "boxes": layout.boxes,
        "routes": [
            {"stream": at, "points": route.points, "label": route.label}
            for at, route in zip(drawn, layout.routes, strict=True)
        ],
    }
