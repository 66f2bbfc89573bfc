"""A spout that waits for ever: COMMAND, where it does so; `next` gives a tuple the first time."""

import sys
import time

import storm

given = False


def wait():
    while True:
        time.sleep(60)


storm.begin()
while True:
    message = storm.read_command()
    if message["command"] == "next" and not given:
        given = True
        storm.emit([0], ask=False, id=0)
    elif message["command"] == sys.argv[1]:
        wait()
    storm.send({"command": "sync"})
