"""Splits sentences in the manner of Storm's own client; says which tasks got the words."""

import storm


def process(t, setup):
    for word in t["tuple"][0].split():
        ids = storm.emit([word], anchors=[t["id"]])
        if setup["conf"].get("tell_ids"):
            storm.emit([word, ids], stream="told", ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
