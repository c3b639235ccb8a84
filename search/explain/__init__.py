"""Explanations: why a schedule is fast, by what is measured, counted and bounded."""
