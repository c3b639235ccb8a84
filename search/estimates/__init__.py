"""Analytic estimates before anything is measured: limits, and the costs of tiles that populations are drawn by."""
