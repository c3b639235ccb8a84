"""From the kernel dialect to compiled code that runs."""
