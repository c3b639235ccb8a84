"""Templates: schedules with knobs, the space of their configs, and which config a build gets."""
