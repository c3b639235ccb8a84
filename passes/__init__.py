"""Rewrites of the IR."""
