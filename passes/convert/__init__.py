"""Conversions to dialects of MLIR's own, for others to take over at the te or the kernel level."""
