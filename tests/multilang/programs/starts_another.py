"""A child that starts another process, and writes its number to FILE; then it may `die`."""

import os
import subprocess
import sys

import storm

storm.begin()
nowhere = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.DEVNULL)
another = subprocess.Popen(["/bin/sleep", "infinity"], **nowhere)
with open(sys.argv[1], "w") as file:
    file.write(str(another.pid))
if sys.argv[2] == "die":
    os._exit(7)
while True:
    storm.read_message()
