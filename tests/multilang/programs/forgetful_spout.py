"""A spout that dies once, with its first tuples open: FILE HOW, and knows only its own tuples.

At each end of a tuple that it does not know it dies (HOW is "dies"), or sends it (HOW is "sends").
"""

import os
import sys

import storm

MARK, HOW = sys.argv[1:]
FIRST = not os.path.exists(MARK)
open_, left = set(), list(range(5)) if FIRST else list(range(5, 10))


def give(number):
    open_.add(number)
    storm.emit([number], ask=False, id=number)


storm.begin()
while True:
    message = storm.read_command()
    command, number = message["command"], message["id"]
    if command == "next":
        if left:
            give(left.pop(0))
        elif FIRST:
            open(MARK, "w").close()
            os._exit(7)
        elif not open_:
            sys.exit(0)
    elif command in ("ack", "fail"):
        if number in open_:
            open_.remove(number)
        else:
            storm.send({"command": "log", "msg": f"{command} {number}", "level": 2})
            if HOW == "dies":
                os._exit(8)
            give(number)
    storm.send({"command": "sync"})
