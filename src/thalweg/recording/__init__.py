"""What happened in a run, written to a file while it runs, and read again later."""
