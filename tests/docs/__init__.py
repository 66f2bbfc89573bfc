"""README and docs as tests: every example runs, every link leads somewhere."""
