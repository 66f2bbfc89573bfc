"""Runtimes: they run tasks, move blocks, keep state. No policy lives here."""
