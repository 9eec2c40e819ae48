"""Runs programs: finds the installed engines, builds launcher command lines, and ends processes."""
