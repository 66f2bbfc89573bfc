"""The benchmark topologies of the Storm-MC document: WordCount, mail and RollingSort.

Each is made by a function with a degree for all of its components but the global one.
"""
