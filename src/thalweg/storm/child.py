"""A Python component as a child process: ``python -m thalweg.storm.child PACKAGE.MODULE.CLASS``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from thalweg.storm.compat import install


def main() -> None:
    """Run a component until its input ends."""
    parser = argparse.ArgumentParser(description="Run a spout or bolt over Storm's protocol.")
    parser.add_argument("target", help="its class: package.module.Class")
    parser.add_argument("-s", "--serializer", choices=("json", "msgpack"), default="json")
    # Storm gives all arguments as one.
    words = sys.argv[1].split() if len(sys.argv) == 2 else sys.argv[1:]
    given = parser.parse_args(words)
    sys.path.insert(0, os.getcwd())
    install()
    module, _, name = given.target.rpartition(".")
    component = getattr(importlib.import_module(module), name)(serializer=given.serializer)
    if component.serializer.output_stream is not sys.stdout:
        # pystorm speaks through a stream of its own, and lets prints come in between.
        sys.stdout = sys.stderr
    component.run()


if __name__ == "__main__":
    main()
