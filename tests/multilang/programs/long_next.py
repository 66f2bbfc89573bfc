"""A spout with two tuples in one `next`; the second when there is a FILE. Logs what it is told."""

import os
import sys
import time

import storm

storm.begin()
open_, given = {"one", "two"}, False
while open_:
    command = storm.read_message()
    storm.send({"command": "log", "msg": command["command"], "level": 2})
    open_.discard(command["id"])
    if command["command"] == "next" and not given:
        given = True
        storm.emit(["one"], ask=False, id="one")
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        storm.send({"command": "emit", "tuple": ["two"], "id": "two"})
        ids = storm.read_message()  # as it is synchronous, nothing else may come
        storm.send({"command": "log", "msg": f"sent to {ids}", "level": 2})
    storm.send({"command": "sync"})
