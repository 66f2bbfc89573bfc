import sys

from streamparse import ReliableSpout

SENTENCES = ["the cow jumped over the moon", "an apple a day keeps the doctor away"]


class SentenceSpout(ReliableSpout):
    """Sends sentences, each with an id, and again if it fails."""

    outputs = ["sentence"]

    def initialize(self, storm_conf, context):
        self.left = storm_conf.get("sentences", 2)

    def next_tuple(self):
        if self.left:
            self.left -= 1
            self.emit([SENTENCES[self.left % len(SENTENCES)]], tup_id=self.left)
        elif not self.unacked_tuples:
            sys.exit(0)  # there is no more; on Storm it would wait
