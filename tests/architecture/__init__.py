"""Rules that hold for the code as a whole: import direction, public names, budgets."""
