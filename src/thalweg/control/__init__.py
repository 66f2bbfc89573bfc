"""Policies: pure functions from what was observed to decisions."""
