from collections import Counter

from streamparse import Bolt


class SplitBolt(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup.values.sentence.split():
            self.emit([word])


class CountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, storm_conf, context):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values.word
        self.counts[word] += 1
        if word == "the":
            self.logger.info("%s: %d", word, self.counts[word])
        self.emit([word, self.counts[word]])
