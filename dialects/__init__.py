"""The levels of the IR: te (what to compute), loop (how), kernel (on which hardware), and the target."""
