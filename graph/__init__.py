"""Whole networks: a graph of operators, passes over it, its tasks, and its compilation into one executable."""
