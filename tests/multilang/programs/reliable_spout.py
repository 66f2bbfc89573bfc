"""pystorm's reliable spout: emits again what failed, up to its limit."""

import sys

from pystorm import ReliableSpout


class Numbers(ReliableSpout):
    def initialize(self, conf, ctx):
        self.max_fails = int(conf.get("max_fails", 3))
        self.numbers = iter(range(int(conf.get("numbers", 5))))

    def next_tuple(self):
        number = next(self.numbers, None)
        if number is not None:
            self.emit([number], tup_id=number)
        elif not self.unacked_tuples:
            sys.exit(0)


if __name__ == "__main__":
    Numbers(serializer=sys.argv[1] if len(sys.argv) > 1 else "json").run()
