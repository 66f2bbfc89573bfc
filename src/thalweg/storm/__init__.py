"""Storm's Python world: components and topologies of streamparse and pystorm, without a JVM.

The names that streamparse exports are here too, so that a component may be written against either:

>>> from thalweg.storm import Bolt
>>> class Split(Bolt):
...     outputs = ["word"]
...     def process(self, tup):
...         for word in tup.values.sentence.split():
...             self.emit([word])
"""

from thalweg.storm.bolts import BatchingBolt, Bolt, TicklessBatchingBolt
from thalweg.storm.building import Hosting, topology_of
from thalweg.storm.components import Component, Tuple
from thalweg.storm.logs import StormHandler
from thalweg.storm.outside import JavaBolt, JavaSpout, ShellBolt, ShellSpout
from thalweg.storm.pipes import StormWentAwayError
from thalweg.storm.spouts import ReliableSpout, Spout
from thalweg.storm.streams import Grouping, Stream
from thalweg.storm.topologies import Topology

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "Grouping",
    "Hosting",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "StormWentAwayError",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
    "topology_of",
]
