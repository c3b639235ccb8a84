"""What tiles cost before anything is measured: limits, and estimates that populations are drawn by."""
