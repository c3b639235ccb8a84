"""What passes and the search ask of the IR, changing nothing."""
