"""Decides which algorithm to run: decision tables with the fewest rows."""
