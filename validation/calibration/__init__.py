"""Calibrates platforms: from point-to-point measurements, or from published figures."""
