"""Sketches: schedules with holes, the populations of numbers that fill them, and the rules that make them."""
