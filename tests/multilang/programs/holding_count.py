"""Counts words when a tick comes, which it holds until then; what has changed it says as told.

"once" when it is asked, "again" until it is given values, or "unasked". Dies once, in the middle of
a tick, if it is given a file to remember that.
"""

import os
import sys

import storm

SAYS, ONCE = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
counts, changed, held = {}, set(), []


def process(t, _setup):
    if t["stream"] == "__restore":
        counts.update({key: value or 0 for key, value in t["tuple"][0]})
        changed.clear()
    elif t["stream"] == "__snapshot":
        tell()
    elif t["stream"] == "__tick":
        count()
    else:
        held.append(t)
        return
    storm.send({"command": "ack", "id": t["id"]})


def tell():
    storm.send({"command": "snapshot", "entries": [[k, counts[k]] for k in sorted(changed)]})
    if SAYS != "again":
        changed.clear()


def count():
    for t in held:
        word = t["tuple"][0]
        counts[word] += 1
        changed.add(word)
        storm.emit([word, counts[word]], anchors=[t["id"]], ask=False)
        storm.send({"command": "ack", "id": t["id"]})
        if ONCE and not os.path.exists(ONCE):
            open(ONCE, "w").close()
            os._exit(9)
    held.clear()
    if SAYS == "unasked":
        tell()


storm.run_bolt(process)
