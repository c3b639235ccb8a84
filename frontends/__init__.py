"""Importers of programs from elsewhere."""
