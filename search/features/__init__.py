"""Features of candidates for cost models: read from the IR of one, or for a whole population from its decisions."""
