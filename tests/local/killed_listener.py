"""A run with a checkpoint that listens for requests; ends when it has seen the last number."""

from __future__ import annotations

import sys
import threading
from typing import Any

import thalweg as tw
from thalweg.events import Noticed


def main(folder: str, port: int, last: int) -> None:
    stop = threading.Event()
    flow = tw.Flow("hooks")
    source = flow.source("hooks", tw.http_source(port), fields={"n": int})
    source.sink("kept", tw.to_table(f"{folder}/kept"))
    source.sink("end", tw.call(lambda t: stop.set() if t.n == last else None))

    def listen(event: Any) -> None:
        if isinstance(event, Noticed) and "listens" in event.text:
            print(event.text, flush=True)

    local = tw.Local(checkpoint=f"{folder}/checkpoint", snapshot_every=0.02)
    flow.run(on=local, stop=stop, listen=listen)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
