"""A small server that runs several topologies and keeps them across its own restart."""
