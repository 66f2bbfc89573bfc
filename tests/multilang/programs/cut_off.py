"""A bolt, or a spout, whose output is cut off after so many bytes, by SIGKILL; once.

CUT FILE json|msgpack [VALUE ...]: with values, as JSON, it is a spout of these.
"""

import json
import os
import signal
import sys

import msgpack

import storm

LEFT, ONCE, FORM, VALUES = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
unpacker = msgpack.Unpacker()


def encoded(message):
    if FORM == "msgpack":
        return msgpack.packb(message)
    return (json.dumps(message) + "\nend\n").encode()


def send(message):
    global LEFT  # noqa: PLW0603 (a small program)
    data = encoded(message)
    cut = len(data) > LEFT and not os.path.exists(ONCE)
    os.write(1, data[:LEFT] if cut else data)
    LEFT -= len(data)
    if cut:
        open(ONCE, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


def read_msgpack():
    while True:
        for message in unpacker:
            return message
        data = os.read(0, 1 << 16)
        if not data:
            sys.exit(0)
        unpacker.feed(data)


storm.send = send
if FORM == "msgpack":
    storm.read_message = read_msgpack


def process(t, _setup):
    storm.emit([t["tuple"][0]], anchors=[t["id"]])
    storm.send({"command": "ack", "id": t["id"]})


def run_spout():
    storm.begin()
    left = [json.loads(value) for value in VALUES]
    while True:
        if storm.read_command()["command"] == "next":
            if not left:
                sys.exit(0)
            told = {"command": "emit", "tuple": [left.pop(0)], "need_task_ids": False}
            storm.send(told)
        storm.send({"command": "sync"})


run_spout() if VALUES else storm.run_bolt(process)
