"""Reports errors, with a sync straight behind them or without one: WAYS, one for each tuple."""

import sys

import storm

WAYS = sys.argv[1:]


def process(t, _setup):
    way = WAYS.pop(0) if WAYS else ""
    storm.emit(t["tuple"], anchors=[t["id"]], ask=False)
    if way == "late":
        storm.send({"command": "ack", "id": t["id"]})
    if way:
        storm.send({"command": "error", "msg": way})
    if way == "sync":
        storm.send({"command": "sync"})
    if way == "log":
        storm.send({"command": "log", "msg": "logged"})
    if way != "late":
        storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
