"""Counts words; what it knows of a word is given to it, and asked back."""

import os
import sys

import storm

counts, changed = {}, set()
DIES = sys.argv[1] if len(sys.argv) > 1 else ""


def process(t, _setup):
    if t["stream"] == "__restore":
        counts.update({key: value or 0 for key, value in t["tuple"][0]})
        changed.clear()
    elif t["stream"] == "__snapshot":
        storm.send({"command": "snapshot", "entries": [[k, counts[k]] for k in sorted(changed)]})
    else:
        word = t["tuple"][0]
        if word == "die" and DIES and not os.path.exists(DIES):
            open(DIES, "w").close()
            os._exit(9)
        counts[word] += 1
        changed.add(word)
        storm.emit([word, counts[word]], anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
