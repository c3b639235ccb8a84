"""Commands of `loopwright`: a file each, found by name, with `add_arguments` and `run`."""
