"""Selects algorithms: compares candidates, writes decision tables and maps, scores models."""
