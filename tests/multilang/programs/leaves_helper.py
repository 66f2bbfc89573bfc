"""Starts a process that keeps its output, says a few things and ends: STATUS, as a bolt or spout.

A bolt ends at its third tuple, a spout behind its last one, each but once for a FILE.
"""

import os
import subprocess
import sys

import storm

STATUS, ONCE = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
storm.begin()
subprocess.Popen(["/bin/sleep", "infinity"], stdin=subprocess.DEVNULL)
seen = 0
while True:
    given = storm.read_command()
    if given.get("stream") == "__heartbeat":
        storm.send({"command": "sync"})
        continue
    if given.get("command") == "next":
        for n in range(3):
            storm.emit([n], ask=False)
        os._exit(STATUS)
    if "command" in given:
        storm.send({"command": "sync"})
        continue
    seen += 1
    if seen == 3 and not os.path.exists(ONCE):
        open(ONCE, "w").close()
        print("about to end", file=sys.stderr, flush=True)
        os._exit(STATUS)
    storm.emit(given["tuple"], anchors=[given["id"]], ask=False)
    storm.send({"command": "ack", "id": given["id"]})
