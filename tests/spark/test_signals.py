"""Who ends a run with a signal to its whole group does not end Spark's Java process by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("thalweg")
ENDLESS = """
import itertools
import thalweg as tw

flow = tw.Flow("endless")
source = tw.rate(tw.constant(100), ({"n": n} for n in itertools.count()))
numbers = flow.source("numbers", source, fields={"n": int})
numbers.sink("out", tw.call(lambda t: print("seen", flush=True)))
"""


def test_sigterm_to_the_group_finishes_what_is_under_way(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDLESS)
    process = subprocess.Popen(  # noqa: S603 (our own command)
        [COMMAND, "run", program, "--on", "spark", "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "seen\n"
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    assert errors.endswith("stopped early, before the sources had ended\n")
