"""Count words in Storm's manner: a spout, two bolts, a sink, wired by a TopologyBuilder.

Shows: a spout that ends, a stateless bolt, a keyed bolt with ``self.state``, groupings and degrees,
and a sink that speaks when all is done. Try:

    thalweg run examples/wordcount.py
    thalweg run examples/wordcount.py --set repeat=2000
    thalweg run examples/wordcount.py --on spark
    thalweg describe examples/wordcount.py
"""

from typing import Any

import thalweg as tw
from thalweg.workloads.boards import drawn

TEXT = """\
to be or not to be that is the question
whether it is nobler in the mind to suffer
the slings and arrows of outrageous fortune
or to take arms against a sea of troubles
and by opposing end them to die to sleep
no more and by a sleep to say we end
the heartache and the thousand natural shocks
that flesh is heir to it is a consummation
devoutly to be wished to die to sleep
to sleep perchance to dream ay there is the rub
""".splitlines()


class Sentences(tw.Spout):
    """Emits the text, again and again; the tasks take its lines in turn."""

    outputs = ("sentence",)

    def prepare(self, context: tw.TaskContext) -> None:
        repeat = int(context.settings.get("repeat", 200))
        self.lines = iter((TEXT * repeat)[context.task :: context.degree])

    def next_tuple(self) -> None:
        line = next(self.lines, None)
        if line is None:
            self.finish()
        else:
            self.emit(line)


class Split(tw.Bolt):
    """Cuts a sentence into words."""

    outputs = ("word",)

    def process(self, t: Any) -> None:
        for word in t.sentence.split():
            self.emit(word)


class Count(tw.Bolt):
    """Counts each word; all tuples with the same word come to the same task."""

    kind = tw.Kind.KEYED
    outputs = ("word", "count")

    def process(self, t: Any) -> None:
        count = self.state.get(t.word, 0) + 1
        self.state.put(t.word, count)
        self.emit(t.word, count)


class Report(tw.Bolt):
    """Keeps the latest count of each word, and prints the top ten at the end."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, t: Any) -> None:
        self.counts[t.word] = t.count

    def process_end(self) -> None:
        top = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:10]
        block = drawn("█", "#")
        most = max(self.counts.values(), default=1)
        print(f"{len(self.counts)} different words, {sum(self.counts.values()):,} in all")
        for rank, (word, count) in enumerate(top, 1):
            print(f"{rank:4}  {word:<10} {count:>8,}  {block * round(30 * count / most)}")


builder = tw.TopologyBuilder("wordcount")
builder.add_spout("sentences", Sentences(), degree=2)
builder.add_bolt("split", Split(), degree=2).shuffle("sentences")
builder.add_bolt("count", Count(), degree=4).fields("split", "word")
builder.add_bolt("report", Report()).global_("count")

if __name__ == "__main__":
    builder.build().run()
