"""Calibration: a cost model of the machine at hand, trained on candidates of random workloads that are timed there."""
