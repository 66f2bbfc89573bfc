"""A client of the protocol as Storm's own is: blocking reads, task ids asked for by default."""

import json
import os
import sys
from collections import deque

pending_commands, pending_ids = deque(), deque()


def read_message():
    text = ""
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        if line == "end\n":
            return json.loads(text)
        text += line


def send(message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


def read_command():
    if pending_commands:
        return pending_commands.popleft()
    message = read_message()
    while isinstance(message, list):
        pending_ids.append(message)
        message = read_message()
    return message


def read_ids():
    if pending_ids:
        return pending_ids.popleft()
    message = read_message()
    while not isinstance(message, list):
        pending_commands.append(message)
        message = read_message()
    return message


def begin():
    setup = read_message()
    send({"pid": os.getpid()})
    open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
    return setup


def emit(values, anchors=(), ask=True, **more):
    send(
        {"command": "emit", "tuple": values, "anchors": list(anchors), "need_task_ids": ask} | more
    )
    return read_ids() if ask and "task" not in more else None


def run_bolt(process):
    setup = begin()
    while True:
        t = read_command()
        if t["stream"] == "__heartbeat":
            send({"command": "sync"})
        else:
            process(t, setup)
