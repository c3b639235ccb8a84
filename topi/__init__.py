"""Operators on tensors, written as tensor expressions."""
