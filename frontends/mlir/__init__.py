"""Networks from programs of other MLIR front ends: StableHLO, linalg on tensors, TOSA."""
