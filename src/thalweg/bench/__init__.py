"""Benchmarks: each measures Thalweg and its references in the same run."""
