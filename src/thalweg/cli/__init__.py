"""The ``thalweg`` command: it reads arguments and prints; all else is done by the library."""

from thalweg.cli.app import main

__all__ = ["main"]
