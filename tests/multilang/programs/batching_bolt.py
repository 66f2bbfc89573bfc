"""pystorm's batching bolt: counts the words of a batch, on every second tick."""

import sys

from pystorm import BatchingBolt


class CountBatches(BatchingBolt):
    def group_key(self, tup):
        return tup.values[0]

    def process_batch(self, key, tups):
        self.emit([key, len(tups)])


if __name__ == "__main__":
    CountBatches(serializer=sys.argv[1] if len(sys.argv) > 1 else "json").run()
