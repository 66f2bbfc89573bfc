"""pystorm's spout: numbered sentences with ids; says goodbye with status 0."""

import sys

from pystorm import Spout

SENTENCES = ["to be or", "not to be", "that is"]


class Words(Spout):
    def initialize(self, conf, ctx):
        self.left = int(conf.get("sentences", 6))
        self.sent = 0
        self.open = set()

    def next_tuple(self):
        if self.sent == self.left and not self.open:
            sys.exit(0)
        if self.sent < self.left:
            self.open.add(self.sent)
            self.emit([SENTENCES[self.sent % 3]], tup_id=self.sent)
            self.sent += 1

    def ack(self, tup_id):
        self.open.discard(tup_id)

    def fail(self, tup_id):
        self.log(f"failed {tup_id}")
        self.emit([SENTENCES[tup_id % 3]], tup_id=tup_id)


if __name__ == "__main__":
    Words(serializer=sys.argv[1] if len(sys.argv) > 1 else "json").run()
