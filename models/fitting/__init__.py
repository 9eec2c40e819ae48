"""Fitting point-to-point models: each procedure asks for experiments and estimates parameters from their times."""
