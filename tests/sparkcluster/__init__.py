"""A Spark cluster for tests on one machine; its hosts share nothing but one folder.

``scripts/cluster`` is the command, `sparkcluster.cluster.Cluster` is for tests. A host is a group
of namespaces that hangs on one process: when that process is killed, all processes, the network
and the disk of the host are gone with it.
"""
