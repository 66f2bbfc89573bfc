"""Lets some numbers fail, and passes others on."""

import storm


def process(t, _setup):
    if t["tuple"][0] % 4 == 1:
        storm.send({"command": "fail", "id": t["id"]})
        return
    storm.emit(t["tuple"], anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
