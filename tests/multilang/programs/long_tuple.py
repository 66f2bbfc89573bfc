"""A bolt that sends tuples as long as there is no FILE, for each tuple; without one for ever."""

import os
import sys
import time

import storm

FILE = sys.argv[1] if len(sys.argv) > 1 else ""


def process(t, _setup):
    if t["stream"] == "__snapshot":
        storm.send({"command": "snapshot", "entries": []})
    elif t["stream"] != "__restore":
        n = 0
        while n == 0 or not (FILE and os.path.exists(FILE)):
            storm.emit([t["tuple"][0], n], anchors=[t["id"]], ask=False)
            n += 1
            time.sleep(0.001)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
