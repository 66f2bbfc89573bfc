"""Sends and acknowledges tuples when nobody waits for it: behind its answer to a heartbeat."""

import storm

held = []


def run():
    storm.begin()
    while True:
        t = storm.read_command()
        if t["stream"] == "__heartbeat":
            storm.send({"command": "sync"})
            let_go()
        elif t["stream"] == "__tick":
            storm.send({"command": "ack", "id": t["id"]})
        else:
            held.append(t)


def let_go():
    for t in held:
        storm.emit(t["tuple"], anchors=[t["id"]], ask=False)
        storm.send({"command": "ack", "id": t["id"]})
    held.clear()


run()
