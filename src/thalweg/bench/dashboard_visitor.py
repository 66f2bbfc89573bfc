"""A visitor of a page in a process of its own: listens to all records, and says how many came.

Run as a file, ``python dashboard_visitor.py PORT FILE``, it needs nothing but Python, so that it
takes no time from what is measured. It waits until there is a page, and makes the file when it
listens.
"""

from __future__ import annotations

import http.client
import sys
import time
from contextlib import suppress
from pathlib import Path

# Seconds between two tries to reach the page.
_AGAIN = 0.02


def visit(port: int, listens: Path) -> int:
    """Listen until the page closes; gives the number of records."""
    connection, records = http.client.HTTPConnection("127.0.0.1", port), 0
    while True:
        try:
            connection.request("GET", "/api/stream?after=0")
            break
        except ConnectionRefusedError:
            connection.close()
            time.sleep(_AGAIN)
    answer = connection.getresponse()
    listens.touch()
    with suppress(OSError, http.client.HTTPException):  # a page may close in the middle of a line
        for line in answer:
            records += line.startswith(b'data: {"n"')
    connection.close()
    return records


if __name__ == "__main__":
    sys.stdout.write(f"{visit(int(sys.argv[1]), Path(sys.argv[2]))}\n")
