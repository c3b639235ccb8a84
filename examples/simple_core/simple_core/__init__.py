"""A simulated processor as a target of loopwright, tuned with its own primitive, sketch rule and cost model."""
