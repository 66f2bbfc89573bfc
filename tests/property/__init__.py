"""Properties: what must hold for every input that hypothesis can think of."""
