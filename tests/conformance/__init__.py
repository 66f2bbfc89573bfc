"""One behaviour suite for every runtime: cases are data, runtimes are registered in one list."""
