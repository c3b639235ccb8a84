"""Compiled networks: what is left of a network when it runs."""
