"""Counts words; reports an error at some, with a sync behind it, as pystorm does."""

import storm

counts, changed = {}, set()


def process(t, _setup):
    if t["stream"] == "__restore":
        counts.update({key: value or 0 for key, value in t["tuple"][0]})
        changed.clear()
    elif t["stream"] == "__snapshot":
        storm.send({"command": "snapshot", "entries": [[k, counts[k]] for k in sorted(changed)]})
    elif t["tuple"][0] == "bad":
        storm.send({"command": "error", "msg": "a bad word"})
        storm.send({"command": "sync"})
        storm.send({"command": "fail", "id": t["id"]})
        return
    else:
        word = t["tuple"][0]
        counts[word] += 1
        changed.add(word)
        storm.emit([word, counts[word]], anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
