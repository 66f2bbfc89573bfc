"""A bolt or spout that logs without end, once for each file that it can make: at WHEN FILE."""

import json
import os
import sys

import storm

WHEN, ONCE = sys.argv[1:]
MANY = (json.dumps({"command": "log", "msg": "still there", "level": 0}) + "\nend\n") * 100


def chat_once(when):
    """Talk for ever if it is time to, unless another has done so."""
    if when == WHEN and not os.path.exists(ONCE):
        open(ONCE, "w").close()
        while True:
            sys.stdout.write(MANY)
            sys.stdout.flush()


storm.begin()
chat_once("beginning")
left = ["to", "be"]
while True:
    given = storm.read_command()
    if "command" in given:  # it is a spout
        chat_once(given["command"])
        if given["command"] == "next":
            if not left:
                sys.exit(0)
            storm.emit([left.pop(0)], ask=False)
        storm.send({"command": "sync"})
    elif given["stream"] == "__heartbeat":
        storm.send({"command": "sync"})
    else:
        chat_once("tuple")
        storm.emit(given["tuple"], anchors=[given["id"]], ask=False)
        storm.send({"command": "ack", "id": given["id"]})
