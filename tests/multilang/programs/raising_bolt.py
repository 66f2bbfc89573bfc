"""pystorm's bolt: raises at one value; once, if it is given a file to remember that."""

import os
import sys

from pystorm import Bolt

BAD, ONCE = int(sys.argv[1]), sys.argv[2]


class Raising(Bolt):
    exit_on_exception = "stay" not in sys.argv

    def process(self, tup):
        (value,) = tup.values
        if value == BAD and not os.path.exists(ONCE):
            open(ONCE, "w").close()
            text = "a bad value"
            raise ValueError(text)
        self.emit([value])


if __name__ == "__main__":
    Raising().run()
