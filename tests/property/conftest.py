"""How hypothesis looks for counter-examples here."""

from __future__ import annotations

import os

from hypothesis import settings

# Runs share two cores with others, so no example is judged by its time. In continuous
# integration the examples are the same every time; on a desk they are new ones.
settings.register_profile(
    "thalweg", deadline=None, max_examples=100, derandomize="CI" in os.environ, print_blob=True
)
settings.load_profile("thalweg")
