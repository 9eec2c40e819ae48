"""Descriptions of clusters from what machines and batch systems say of themselves."""
