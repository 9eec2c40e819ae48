"""Measurements on real machines: portable scripts, imported results, gains."""
