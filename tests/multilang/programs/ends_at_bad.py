"""Counts words; lets the word "bad" fail, and ends with an error, as pystorm's bolts do.

Lets the word "odd" fail and goes on; ends at the word "worse" without a word.
"""

import os

import storm

counts, changed = {}, set()


def process(t, _setup):
    if t["stream"] == "__restore":
        counts.update({key: value or 0 for key, value in t["tuple"][0]})
        changed.clear()
    elif t["stream"] == "__snapshot":
        storm.send({"command": "snapshot", "entries": [[k, counts[k]] for k in sorted(changed)]})
    elif t["tuple"][0] == "worse":
        os._exit(1)
    elif t["tuple"][0] == "odd":
        storm.send({"command": "fail", "id": t["id"]})
        return
    elif t["tuple"][0] == "bad":
        storm.send({"command": "fail", "id": t["id"]})
        os._exit(1)
    else:
        word = t["tuple"][0]
        counts[word] = counts.get(word, 0) + 1
        changed.add(word)
        storm.emit([word, counts[word]], anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
