"""Figures as PNG files, one module for each kind of figure."""
