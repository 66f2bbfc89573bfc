"""A spout that ends with status 1 in each `next`, only after its host has gone on with others."""

import sys
import time

import storm

storm.begin()
while True:
    if storm.read_command()["command"] == "next":
        time.sleep(0.1)
        sys.exit(1)
    storm.send({"command": "sync"})
