"""Pješivac-Grbović et al. 2007: point-to-point models and decision maps."""
