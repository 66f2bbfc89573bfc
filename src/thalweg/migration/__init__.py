"""From one set of routing tables to the next: what moves, in which order, by which protocol."""
