"""Sends its own number, the component that it has by what it was told, and its sender's number."""

import storm


def process(t, setup):
    told = setup["context"]
    own = told["taskid"]
    values = [own, told["task->component"][str(own)], t["task"]]
    storm.emit(values, anchors=[t["id"]], ask=False)
    storm.send({"command": "ack", "id": t["id"]})


storm.run_bolt(process)
