"""Holds tuples until a tick comes, or one more than so many; dies once, at the word "die"."""

import os
import sys

import storm

MOST, ONCE = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
held = []


def process(t, _setup):
    if t["stream"] == "__snapshot":
        storm.send({"command": "snapshot", "entries": []})
    elif t["stream"] not in ("__restore", "__tick"):
        held.append(t)
        if len(held) > MOST:
            let_go()
        if t["tuple"][0] == "die" and ONCE and not os.path.exists(ONCE):
            open(ONCE, "w").close()
            os._exit(9)
        return
    if t["stream"] == "__tick":
        let_go()
    storm.send({"command": "ack", "id": t["id"]})


def let_go():
    for t in held:
        storm.emit([t["tuple"][0]], anchors=[t["id"]], ask=False)
        storm.send({"command": "ack", "id": t["id"]})
    held.clear()


storm.run_bolt(process)
