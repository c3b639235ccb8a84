"""Analyses of a computation for sketch rules: reductions with data reuse, chains of blocks, strides in memory."""
