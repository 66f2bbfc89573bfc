"""Closes its output, and stays."""

import os
import signal

import storm

storm.begin()
os.close(1)
while True:
    signal.pause()
