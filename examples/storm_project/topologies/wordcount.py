"""Words of sentences, counted: a streamparse topology, as it would run on Storm."""

from bolts.words import CountBolt, SplitBolt
from spouts.sentences import SentenceSpout
from streamparse import Grouping, Topology


class WordCount(Topology):
    sentences = SentenceSpout.spec(par={"short": 1, "long": 2})
    split = SplitBolt.spec(inputs=[sentences], par=2)
    count = CountBolt.spec(inputs={split: Grouping.fields("word")}, par=2)
