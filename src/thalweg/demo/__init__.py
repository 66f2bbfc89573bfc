"""The demo: one stream, two runtimes, hash against locality, and what was seen."""
