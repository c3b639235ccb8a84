"""Passes for stock `xdsl-opt` that bring functions of other front ends into the graph dialect."""
