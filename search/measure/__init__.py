"""Measuring: worker processes that build candidates, check their results against a reference, and time them."""
