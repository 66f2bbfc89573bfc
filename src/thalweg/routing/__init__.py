"""Where tuples go: routing tables, and one router per grouping."""
