"""What a record file says, as one HTML page that needs nothing else."""
