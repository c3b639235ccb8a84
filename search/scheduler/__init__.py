"""Tuning many tasks together: which of them gets the next trials."""
