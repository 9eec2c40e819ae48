"""Notebooks that answer questions about clusters, one file each."""
