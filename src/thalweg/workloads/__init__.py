"""Streams that are made up, the same ones every time: for examples, tests and measurements."""
