"""Which task runs on which processing unit: pure functions from needs to a plan."""
