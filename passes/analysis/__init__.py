"""Analyses of the IR, for passes and the search; they change nothing."""
