"""How many tasks each component should have: what is measured, and the policies that decide."""
