"""The local runtime: one machine, all cores, in order."""
