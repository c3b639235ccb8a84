"""Tuning: the loop for one task, the scheduler of many, their options, their progress."""
