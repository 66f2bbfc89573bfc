"""A bolt that misbehaves as it is told: --when N --how HOW, once for each file that it can make."""

import os
import sys
import time

import storm

WHEN, HOW, ONCE = int(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
seen = 0


def is_first_time():
    if not ONCE:
        return True
    try:
        os.close(os.open(ONCE, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def process(t, _setup):
    global seen  # noqa: PLW0603 (a small program)
    if seen == WHEN and is_first_time():
        print("about to", HOW, file=sys.stderr, flush=True)
        misbehave(t)
    seen += 1
    storm.emit(t["tuple"], anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


def misbehave(t):
    if HOW == "die":
        os._exit(7)
    if HOW == "leave":
        sys.exit(0)
    if HOW == "kill":
        os.kill(os.getpid(), 9)
    if HOW == "hang":
        while True:
            time.sleep(60)
    if HOW == "garbage":
        sys.stdout.write("Segmentation violation -- jsp = 0x1004\nend\n")
        sys.stdout.flush()
    if HOW == "deep":
        sys.stdout.write('{"command": "log", "msg": ' + "[" * 5000 + "]" * 5000 + "}\nend\n")
        sys.stdout.flush()
    if HOW == "half":
        sys.stdout.write('{"command": "emit", "tup')
        sys.stdout.flush()
        os._exit(0)
    if HOW == "unknown-id":
        storm.send({"command": "ack", "id": "nobody's"})
    if HOW == "twice":
        storm.emit(t["tuple"], anchors=[t["id"]], ask=False)
        storm.send({"command": "ack", "id": t["id"]})
    if HOW == "no-command":
        storm.send({"tuple": [1]})
    if HOW == "surrogate":
        storm.emit(["\ud800"], anchors=[t["id"]], ask=False)
    if HOW == "wrong-stream":
        storm.send({"command": "emit", "tuple": [1], "stream": "nowhere", "need_task_ids": False})
    if HOW == "wrong-length":
        storm.send({"command": "emit", "tuple": [1, 2, 3], "need_task_ids": False})


storm.run_bolt(process)
