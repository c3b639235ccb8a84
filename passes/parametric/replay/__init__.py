"""What each schedule primitive does to the extents of a nest: one module for each, under the primitive's own name."""
