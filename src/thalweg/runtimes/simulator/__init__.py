"""Discrete events in virtual time: clusters larger than the machine at hand, policies compared."""
