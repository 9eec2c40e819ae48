"""Checks the algorithms: on real data against MPI's definitions, and against the same algorithms elsewhere."""
