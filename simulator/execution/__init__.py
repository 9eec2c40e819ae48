"""Runs programs: finds MPI installations, builds launcher command lines, and ends processes."""
