"""A spout with a tuple whose id is half a character."""

import storm

storm.begin()
while True:
    if storm.read_command()["command"] == "next":
        storm.emit([1], ask=False, id="\ud800")
    storm.send({"command": "sync"})
