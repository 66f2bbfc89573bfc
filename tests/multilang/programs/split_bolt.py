"""pystorm's bolt: words of sentences."""

import sys

from pystorm import Bolt


class Split(Bolt):
    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word])


if __name__ == "__main__":
    Split(serializer=sys.argv[1] if len(sys.argv) > 1 else "json").run()
