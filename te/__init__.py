"""Tensor expressions: the Python front end of the te dialect."""
