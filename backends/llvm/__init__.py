"""The CPU backend, through LLVM."""
