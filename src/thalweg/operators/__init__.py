"""The operators of the fluent API: bolts on blocks that call the users' functions."""
