"""A spout that logs what it hears; its first `next` gives a tuple and waits for a file: FILE."""

import sys
import time
from pathlib import Path

import storm

given = 0
storm.begin()
while True:
    message = storm.read_command()
    storm.send({"command": "log", "msg": message["command"]})
    if message["command"] == "next":
        if given:
            sys.exit(0)
        given = 1
        storm.emit([0], ask=False, id=0)
        while not Path(sys.argv[1]).exists():
            time.sleep(0.01)
    storm.send({"command": "sync"})
