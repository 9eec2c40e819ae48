"""Formulas of collective algorithms in the parameters of point-to-point models: one file a collective."""
