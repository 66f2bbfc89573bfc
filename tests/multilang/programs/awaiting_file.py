"""A spout that says in its first `next` that it waits for a file: FILE; then it has one tuple."""

import sys
import time
from pathlib import Path

import storm

storm.begin()
while True:
    command = storm.read_command()["command"]
    if command == "next":
        storm.send({"command": "log", "msg": "waits"})
        while not Path(sys.argv[1]).exists():
            time.sleep(0.01)
        storm.emit([0], ask=False)
        storm.send({"command": "sync"})
        sys.exit(0)
    storm.send({"command": "sync"})
