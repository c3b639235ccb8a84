"""The search for a fast schedule: sketches, candidates, cost model, measuring."""
