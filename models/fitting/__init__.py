"""Procedures that estimate the parameters of point-to-point models: which experiments to make, and what they say."""
