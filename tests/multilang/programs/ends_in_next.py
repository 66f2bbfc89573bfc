"""A spout that gives a tuple in each `next`, and ends with status 1 in the middle of it."""

import sys

import storm

storm.begin()
while True:
    if storm.read_command()["command"] == "next":
        storm.emit([0], ask=False)
        sys.exit(1)
    storm.send({"command": "sync"})
