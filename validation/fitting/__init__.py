"""Estimates the parameters of models, by name, and checks how well estimation recovers known parameters."""
