"""Operators of core ATen, as operators of a network: every function in a module of this folder that names some."""
