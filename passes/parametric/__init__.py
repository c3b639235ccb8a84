"""Scheduled programs whose extents depend on decisions: one nest for all candidates of a schedule with open numbers."""
