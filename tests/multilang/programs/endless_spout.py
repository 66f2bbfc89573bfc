"""A spout that never says that it is done with `next`."""

import storm

storm.begin()
n = 0
while True:
    command = storm.read_command()["command"]
    while command == "next":
        storm.emit([n], ask=False)
        n += 1
    storm.send({"command": "sync"})
