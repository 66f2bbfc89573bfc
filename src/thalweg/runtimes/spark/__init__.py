"""The Spark runtime: a topology as one Spark job per micro-batch."""
