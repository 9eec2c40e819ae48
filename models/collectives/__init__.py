"""Formulas of collective algorithms in the parameters of point-to-point models, in one file per collective."""
