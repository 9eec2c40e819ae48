"""Descriptions of clusters from what machines and batch systems report about themselves."""
