"""A spout that dies at some commands, each time once: COMMAND ..., in the order of the files."""

import os
import sys

import storm

FOLDER, WAYS = sys.argv[1], sys.argv[2:]
left = ["to", "be"]


def dies_at(command):
    """Say whether this is the command at which it is to die next."""
    done = len(os.listdir(FOLDER))
    if done == len(WAYS) or WAYS[done] != command:
        return False
    open(os.path.join(FOLDER, str(done)), "w").close()
    return True


storm.begin()
while True:
    command = storm.read_command()["command"]
    if dies_at(command):
        os._exit(7)
    if command == "next":
        if not left:
            sys.exit(0)
        storm.send({"command": "emit", "tuple": [left.pop(0)], "need_task_ids": False})
    storm.send({"command": "sync"})
