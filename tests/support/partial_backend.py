"""Not quite a backend."""


def build(workload, schedule):
    return b""
