"""Turns cases into timings: runners for SMPI, for real MPI libraries and for point-to-point experiments."""
