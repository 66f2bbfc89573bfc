"""Windows: which tuples belong together by time or number, and what is made of them."""
