"""What sketch rules ask of a computation: its reductions with data reuse, its chains, how it walks memory."""
