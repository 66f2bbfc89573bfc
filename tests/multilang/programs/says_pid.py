"""Puts its process number behind each value."""

import os

import storm


def process(t, _setup):
    storm.emit([*t["tuple"], os.getpid()], anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
