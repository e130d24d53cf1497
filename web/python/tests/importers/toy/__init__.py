"""A format that exists for one test only: what a new format needs, and that it needs nothing else."""
