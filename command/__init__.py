"""What `loopwright` can be told to do: a file per command, found by name, each with `add_arguments` and `run`."""
