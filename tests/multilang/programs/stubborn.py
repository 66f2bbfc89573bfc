"""Ignores that its input ends, and most signals; tells its process id through a file (a FIFO)."""

import os
import signal
import sys

import storm

for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
    signal.signal(each, signal.SIG_IGN)
storm.begin()
storm.read_command()
if os.fork() == 0:  # one of its own, in the same group
    while True:
        signal.pause()
with open(sys.argv[1], "w") as told:
    print(os.getpid(), file=told)
while True:
    signal.pause()
