"""Presenters of results, one for each type that the public functions return."""
