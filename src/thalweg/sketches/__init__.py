"""Algorithms without I/O: frequent pairs of keys, graph partitioning, the assignment problem."""
